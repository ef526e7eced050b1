/** What the kernel still holds of sandboxes, whoever holds it: processes, control groups, mounts in any mount namespace. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const CGROUP_DEPTH = 6;

/** One line per thing that names one of the ids. */
export const tracesOf = (ids: readonly string[]): string[] => {
  const named = (text: string) => ids.find((id) => text.includes(id));
  const traces = new Set<string>();
  for (const pid of pids()) {
    const inside = named(textOf(`/proc/${pid}/cgroup`));
    if (inside) traces.add(`process ${pid} of ${inside}`);
    for (const line of textOf(`/proc/${pid}/mountinfo`).split('\n')) if (named(line)) traces.add(`mount ${line.split(' ')[4]}`);
  }
  const walk = (directory: string, depth: number): void => {
    for (const name of entriesOf(directory)) {
      if (named(name)) traces.add(`cgroup ${join(directory, name)}`);
      else if (depth > 1) walk(join(directory, name), depth - 1);
    }
  };
  walk('/sys/fs/cgroup', CGROUP_DEPTH);
  return [...traces];
};

/** Processes inside these sandboxes. */
export const processesOf = (ids: readonly string[]): number[] => pids().filter((pid) => ids.some((id) => textOf(`/proc/${pid}/cgroup`).includes(id)));

/** Launchers of the platform whose run directory this is. */
export const launchersBelow = (runDir: string): number[] =>
  pids().filter((pid) => {
    const [program = '', ...args] = textOf(`/proc/${pid}/cmdline`).split('\0');
    return program.endsWith('dsec-launcher') && args.some((arg) => arg.startsWith(runDir));
  });

const pids = (): number[] => entriesOf('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));

const entriesOf = (directory: string): string[] => {
  try {
    return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return []; // gone while it was looked at
  }
};
const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};
