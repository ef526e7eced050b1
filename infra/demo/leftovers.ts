/** What a platform may leave on a machine, counted before and after: the demo and the tests compare. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

export type Leftovers = { readonly processes: readonly string[]; readonly mounts: readonly string[]; readonly cgroups: readonly string[]; readonly namespaces: readonly string[]; readonly files: readonly string[] };

/** Everything that belongs to the platform with these directories and this control-group name, right now. */
export const findLeftovers = (owned: { readonly cgroupName: string; readonly dirs: readonly string[] }): Leftovers => ({
  processes: processesOf(owned.cgroupName, owned.dirs),
  mounts: readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter((line) => owned.dirs.some((dir) => line.includes(` ${dir}/`))),
  cgroups: cgroupDirs(owned.cgroupName),
  namespaces: processesOf(owned.cgroupName, owned.dirs).length > 0 ? networkNamespaces() : [],
  files: owned.dirs.filter((dir) => existsSync(dir)),
});

export const countLeftovers = (found: Leftovers): number => Object.values(found).reduce((n, list) => n + list.length, 0);

const pids = (): string[] => readdirSync('/proc').filter((name) => /^\d+$/.test(name));

const processesOf = (cgroupName: string, dirs: readonly string[]): string[] =>
  pids().flatMap((pid) => {
    const groups = readOr(`/proc/${pid}/cgroup`);
    const command = readOr(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    const ours = groups.includes(`/${cgroupName}/`) || dirs.some((dir) => command.includes(dir));
    return ours && pid !== String(process.pid) ? [`${pid} ${command}`] : [];
  });

const CGROUP_ROOT = '/sys/fs/cgroup';
const cgroupDirs = (name: string): string[] =>
  [CGROUP_ROOT, ...readdirSync(CGROUP_ROOT).map((entry) => join(CGROUP_ROOT, entry))].map((root) => join(root, name)).filter((dir) => existsSync(dir));

/** Network namespaces that are not this process's own. */
const networkNamespaces = (): string[] => {
  const own = readlinkSync('/proc/self/ns/net');
  return [...new Set(pids().map((pid) => linkOr(`/proc/${pid}/ns/net`)))].filter((ns) => ns !== '' && ns !== own);
};

const readOr = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // the process has ended meanwhile
  }
};
const linkOr = (file: string): string => {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
};
