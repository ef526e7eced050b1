/** What a running platform has in the kernel and on disk, counted: equal before and after means that nothing was left. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupNameOf, pathsOf } from '#runtime/config.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

export type Traces = {
  readonly processes: number;
  readonly networkNamespaces: number;
  readonly cgroups: number;
  readonly launcherMounts: number;
  readonly launcherDescriptors: number;
  readonly sockets: number;
  readonly loopDevices: number;
  readonly interfaces: number;
  readonly records: number;
  readonly uppers: number;
};

export const launcherPid = (host: TestPlatform): number => {
  const found = pids().find((pid) => textOf(`/proc/${pid}/cmdline`).includes('dsec-launcher') && textOf(`/proc/${pid}/cmdline`).includes(host.dir));
  if (!found) throw new Error('no launcher runs');
  return Number(found);
};

export const tracesOf = (host: TestPlatform): Traces => {
  const name = cgroupNameOf(host.platform.config);
  const { sandboxes, sockets, runDir } = pathsOf(host.platform.config);
  const launcher = launcherPid(host);
  const members = pids().filter((pid) => textOf(`/proc/${pid}/cgroup`).includes(`/${name}/`) && !/^State:\s+[ZX]/m.test(textOf(`/proc/${pid}/status`)));
  const boxes = namesIn(sandboxes);
  return {
    processes: members.length,
    networkNamespaces: new Set(members.map((pid) => linkOf(`/proc/${pid}/ns/net`))).size,
    cgroups: cgroupRoots(name).reduce((n, root) => n + directoriesBelow(root), 0),
    launcherMounts: textOf(`/proc/${launcher}/mountinfo`)
      .split('\n')
      .filter((line) => line.includes(runDir)).length,
    launcherDescriptors: namesIn(`/proc/${launcher}/fd`).length,
    sockets: namesIn(sockets).length,
    loopDevices: namesIn('/sys/block').filter((device) => textOf(`/sys/block/${device}/loop/backing_file`).startsWith(`${host.dir}/`)).length,
    interfaces: namesIn('/sys/class/net').filter((link) => link.includes(name)).length,
    records: namesIn(join(runDir, 'sandboxes')).length,
    uppers: boxes.reduce((n, box) => n + namesIn(join(sandboxes, box)).filter((entry) => entry !== 'exec').length, 0),
  };
};

const pids = (): string[] => namesIn('/proc').filter((name) => /^\d+$/.test(name));

const cgroupRoots = (name: string): string[] =>
  ['/sys/fs/cgroup', ...namesIn('/sys/fs/cgroup').map((entry) => join('/sys/fs/cgroup', entry))]
    .map((root) => join(root, name))
    .filter((dir) => existsSync(dir));

const directoriesBelow = (dir: string): number =>
  orElse(() => readdirSync(dir, { withFileTypes: true }), [])
    .filter((entry) => entry.isDirectory())
    .reduce((n, entry) => n + 1 + directoriesBelow(join(dir, entry.name)), 0);

/** Entries of /proc and /sys vanish while they are read. */
const orElse = <T>(read: () => T, otherwise: T): T => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};
const namesIn = (dir: string): string[] => orElse(() => readdirSync(dir), []);
const textOf = (file: string): string => orElse(() => readFileSync(file, 'utf8'), '');
const linkOf = (file: string): string => orElse(() => readlinkSync(file), '');
