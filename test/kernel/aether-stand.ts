/** A real Aether for tests, without a launcher: `aether-stand.c` gives it what the launcher would, on the host's root file system. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const PROJECT = join(import.meta.dirname, '../..');
const BUILD = join(PROJECT, 'build/native');
const UID_BASE = 100_000;

export type StandOptions = {
  /** `v2`: a cgroup per command. `none`: a host without a v2 tree. */
  readonly cgroups?: 'v2' | 'none';
  /** Limits of all commands together, by whichever hierarchy of this host has the controller. */
  readonly pids?: number;
  readonly memoryMiB?: number;
  readonly lifeSeconds?: number;
};

export type Stand = {
  readonly dir: string;
  readonly execDir: string;
  readonly socketPath: string;
  /** Aether's process, seen from the host. */
  readonly pid: number;
  /** Names of the commands' cgroups that exist now. */
  commandGroups(): string[];
  /** Resolves when Aether has ended. */
  readonly ended: Promise<unknown>;
  /** Ends Aether and everything in its sandbox, as a crash of the node's kernel would. */
  kill(): Promise<void>;
  stop(): Promise<void>;
};

/** DSEC_TEST_AETHER names another build of it, with sanitizers for example. */
const AETHER = process.env['DSEC_TEST_AETHER'] ?? join(BUILD, 'dsec-aether');

let built: string | undefined;

/** Once per test file: builds what is not up to date. */
const buildStand = (): string => {
  if (built) return built;
  const source = join(import.meta.dirname, 'aether-stand.c');
  const program = join(BUILD, 'test/aether-stand');
  execFileSync(join(PROJECT, 'node-runtime/native/build.sh'), { stdio: ['ignore', 'ignore', 'inherit'] });
  if (!existsSync(program) || statSync(program).mtimeMs < statSync(source).mtimeMs) {
    execFileSync(process.env['CC'] ?? 'gcc', ['-std=c17', '-O1', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE', '-o', program, source], { stdio: 'inherit' });
  }
  built = program;
  return program;
};

type Controller = 'pids' | 'memory';

const mountPoint = (matches: (type: string, superOptions: string) => boolean): string | undefined => {
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [left = '', right = ''] = line.split(' - ');
    const [type = '', , superOptions = ''] = right.split(' ');
    if (matches(type, superOptions)) return left.split(' ')[4];
  }
  return undefined;
};

const unifiedRoot = (): string => {
  const root = mountPoint((type) => type === 'cgroup2');
  if (!root) throw new Error('no cgroup v2 tree is mounted here; Aether cannot be tested with one');
  return root;
};

const makeUnified = (name: string): string => {
  const group = join(unifiedRoot(), name);
  for (const path of [group, join(group, 'aether'), join(group, 'payload')]) mkdirSync(path);
  for (const path of [join(group, 'cgroup.procs'), join(group, 'payload'), join(group, 'payload/cgroup.procs')]) chownSync(path, UID_BASE, UID_BASE);
  return group;
};

/** Files that limit and count, in the two versions of the interface. */
const FILES = {
  pids: { v1: 'pids.max', v2: 'pids.max', oom: '' },
  memory: { v1: 'memory.limit_in_bytes', v2: 'memory.max', oom: 'memory.oom_control' },
} as const;

type Limited = { readonly gate: string | undefined; readonly group: string | undefined; readonly directory: string };

/** Limits all commands. On v1 by a group of its own with a gate, on v2 by the payload's. */
const limit = (controller: Controller, name: string, unified: string | undefined, value: number): Limited => {
  const root = mountPoint((type, options) => type === 'cgroup' && options.split(',').includes(controller));
  if (root) {
    const group = join(root, name);
    mkdirSync(group);
    writeFileSync(join(group, FILES[controller].v1), String(value));
    return { gate: join(group, 'cgroup.procs'), group, directory: group };
  }
  if (!unified) throw new Error(`no v1 ${controller} hierarchy here, and the stand was asked to do without v2`);
  for (const path of [unifiedRoot(), unified, join(unified, 'payload')]) writeFileSync(join(path, 'cgroup.subtree_control'), `+${controller}`);
  writeFileSync(join(unified, 'payload', FILES[controller].v2), String(value));
  return { gate: undefined, group: undefined, directory: join(unified, 'payload') };
};

const childGroups = (group: string): string[] =>
  readdirSync(join(group, 'payload'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

/** A group can be removed as soon as its last process is gone, which the kernel does in its own time. */
const removeGroup = async (path: string): Promise<void> => {
  for (let tries = 0; ; tries += 1) {
    try {
      rmdirSync(path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || tries > 1_000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
};

const oomFile = (directory: string): string | undefined =>
  [join(directory, FILES.memory.oom), join(directory, 'memory.events')].find((path) => existsSync(path));

export const startAether = async (options: StandOptions = {}): Promise<Stand> => {
  const stand = buildStand();
  const dir = mkdtempSync(join(tmpdir(), 'dsec-aether-'));
  chmodSync(dir, 0o777); // commands may leave marks for the test here
  const name = dir.slice(dir.lastIndexOf('dsec-'));
  const execDir = join(dir, 'exec');
  const socketPath = join(dir, 'socket');
  mkdirSync(execDir);
  chownSync(execDir, UID_BASE, UID_BASE);
  const unified = (options.cgroups ?? 'v2') === 'v2' ? makeUnified(name) : undefined;
  const pids = options.pids === undefined ? undefined : limit('pids', name, unified, options.pids);
  const memory = options.memoryMiB === undefined ? undefined : limit('memory', name, unified, options.memoryMiB * 1024 * 1024);
  const limits = [pids, memory].filter((limited) => limited !== undefined);
  const gates = limits.map(({ gate }) => gate).filter((gate) => gate !== undefined);
  const aether = join(dir, 'aether');
  copyFileSync(AETHER, aether);
  chmodSync(aether, 0o711); // unreadable inside: so its process is nobody's to look into there
  const counters = [unified ?? '-', (memory && oomFile(memory.directory)) ?? '-', pids?.group ?? '-'];
  const args = [aether, socketPath, execDir, String(options.lifeSeconds ?? 600), ...counters, ...gates];
  const child = spawn(stand, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];

  const kill = async (): Promise<void> => {
    child.stdin.end();
    await ended;
  };
  return {
    dir,
    execDir,
    socketPath,
    pid: Number(line),
    commandGroups: () => (unified ? childGroups(unified) : []),
    ended,
    kill,
    stop: async () => {
      await kill();
      if (unified) {
        const children = childGroups(unified).map((group) => join(unified, 'payload', group));
        for (const path of [...children, join(unified, 'payload'), join(unified, 'aether'), unified]) await removeGroup(path);
      }
      for (const { group } of limits) if (group) await removeGroup(group);
      rmSync(dir, { recursive: true, force: true });
    },
  };
};
