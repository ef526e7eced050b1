/** Small ways of looking at the machine, shared by the checks. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { DOCTOR_LIMITS } from './limits.ts';

/** Contents of a small file of /proc or /sys; undefined when it is not there or may not be read. */
export const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
};

export const numberIn = (path: string): number | undefined => {
  const value = Number(read(path));
  return Number.isFinite(value) ? value : undefined;
};

/** Runs a program to its end. `ok` is false when it cannot be started, fails or takes too long. Standard input is empty. */
export const run = (program: string, ...args: readonly string[]): Promise<{ ok: boolean; output: string }> =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: DOCTOR_LIMITS.probeTimeoutMs, killSignal: 'SIGKILL' }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') }),
    ).stdin?.end();
  });

export const firstLine = (text: string): string => (text.split('\n')[0] ?? '').slice(0, 100);

/** Where PATH has a program, or undefined. */
export const onPath = (program: string, path: string | undefined): string | undefined =>
  (path ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, program))
    .find(isExecutable);

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Known to the kernel now, or as a module that mounting loads. */
export const knowsFilesystem = (name: string): boolean =>
  new RegExp(`\\b${name}$`, 'm').test(read('/proc/filesystems') ?? '') || existsSync(`/sys/module/${name}`);

export const hasCapability = (bit: number): boolean => {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(read('/proc/self/status') ?? '')?.[1];
  return mask !== undefined && ((BigInt(`0x${mask}`) >> BigInt(bit)) & 1n) === 1n;
};

/** Where each kind of control-group tree is mounted. */
export const cgroupMounts = (): { readonly v2: string | undefined; readonly v1: ReadonlyMap<string, string> } => {
  const v1 = new Map<string, string>();
  let v2: string | undefined;
  for (const line of (read('/proc/self/mounts') ?? '').split('\n')) {
    const [, target = '', type, options = ''] = line.split(' ');
    if (type === 'cgroup2') v2 ??= target;
    if (type === 'cgroup') for (const option of options.split(',')) if (!v1.has(option)) v1.set(option, target);
  }
  return { v2, v1 };
};
