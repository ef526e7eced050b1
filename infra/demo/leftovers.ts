/** What a platform may leave on a machine, found before and after: the demo and the tests compare. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

export type Leftovers = {
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  readonly cgroups: readonly string[];
  readonly networkNamespaces: readonly string[];
  /** Loop devices with a file of the platform behind them. */
  readonly loopDevices: readonly string[];
  readonly files: readonly string[];
};

export type Owned = {
  readonly cgroupName: string;
  readonly dirs: readonly string[];
  /** Network namespaces that its sandboxes had. */
  readonly namespaces: NamespaceRecord;
};

/** Everything that belongs to the platform with these directories and this control-group name, right now. */
export const findLeftovers = ({ cgroupName, dirs, namespaces }: Owned): Leftovers => ({
  processes: processesOf(cgroupName, dirs),
  mounts: mountsBelow(dirs),
  cgroups: cgroupDirs(cgroupName),
  networkNamespaces: stillThere(namespaces),
  loopDevices: loopDevicesOver(dirs),
  files: dirs.filter((dir) => existsSync(dir)),
});

export const countLeftovers = (found: Leftovers): number => Object.values(found).reduce((n, list) => n + list.length, 0);

/** Names of namespaces, and when they were looked at: the kernel gives the name of one that has gone to the next that is made. */
export type NamespaceRecord = { readonly names: readonly string[]; readonly atTicks: number };

/** Network namespaces of live processes; call it while they all live. */
export const recordNamespaces = (ofPids: readonly number[]): NamespaceRecord => ({
  names: ofPids.map((pid) => linkOf(`/proc/${pid}/ns/net`)).filter((name) => name !== ''),
  atTicks: Math.ceil(Number.parseFloat(textOf('/proc/uptime')) * TICKS_PER_SECOND),
});

const TICKS_PER_SECOND = 100;

/** Those in which a process lives that was there when they were recorded. */
const stillThere = ({ names, atTicks }: NamespaceRecord): string[] => [
  ...new Set(
    pids().flatMap((pid) =>
      names.includes(linkOf(`/proc/${pid}/ns/net`)) && startedAtTicks(pid) <= atTicks && !hasEnded(pid) ? [linkOf(`/proc/${pid}/ns/net`)] : [],
    ),
  ),
];

/** Field 22 of stat, counted behind the command name, which may hold anything. */
const startedAtTicks = (pid: string): number => Number(textOf(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')[19] ?? Number.NaN);

const pids = (): string[] => readdirSync('/proc').filter((name) => /^\d+$/.test(name));

const processesOf = (cgroupName: string, dirs: readonly string[]): string[] =>
  pids().flatMap((pid) => {
    const command = textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    const ours = textOf(`/proc/${pid}/cgroup`).includes(`/${cgroupName}/`) || dirs.some((dir) => command.includes(dir));
    return ours && pid !== String(process.pid) && !hasEnded(pid) ? [`${pid} ${command}`] : [];
  });

/** Dead, and only waiting for init to collect it: after the launcher's death sandboxes are init's children. */
const hasEnded = (pid: string): boolean => /^State:\s+[ZX]/m.test(textOf(`/proc/${pid}/status`));

const mountsBelow = (dirs: readonly string[]): string[] =>
  textOf('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => dirs.some((dir) => line.includes(` ${dir}/`)));

const loopDevicesOver = (dirs: readonly string[]): string[] =>
  readdirSync('/sys/block').flatMap((name) => {
    const file = textOf(`/sys/block/${name}/loop/backing_file`).trim();
    return dirs.some((dir) => file.startsWith(`${dir}/`)) ? [`${name} ${file}`] : [];
  });

const CGROUP_ROOT = '/sys/fs/cgroup';
const cgroupDirs = (name: string): string[] =>
  [CGROUP_ROOT, ...readdirSync(CGROUP_ROOT).map((entry) => join(CGROUP_ROOT, entry))].map((root) => join(root, name)).filter((dir) => existsSync(dir));

/** Empty when the process has ended meanwhile. */
const textOf = (file: string): string => orEmpty(() => readFileSync(file, 'utf8'));
const linkOf = (file: string): string => orEmpty(() => readlinkSync(file));
const orEmpty = (read: () => string): string => {
  try {
    return read();
  } catch {
    return '';
  }
};
