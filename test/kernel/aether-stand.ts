/** A real Aether for tests, without a launcher: `aether-stand.c` gives it what the launcher would, on the host's root file system. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const PROJECT = join(import.meta.dirname, '../..');
const BUILD = join(PROJECT, 'build/native');
const UID_BASE = 100_000;

export type StandOptions = {
  /** `v2`: a cgroup per command. `none`: a host without a v2 tree. */
  readonly cgroups?: 'v2' | 'none';
  /** Also puts commands into a v1 pids cgroup with this limit, where the host has that hierarchy. */
  readonly pids?: number;
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
  /** Ends Aether and everything in its sandbox, as a crash of the node's kernel would. */
  kill(): Promise<void>;
  stop(): Promise<void>;
};

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

const mountPoint = (matches: (type: string, superOptions: string) => boolean): string | undefined => {
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [left = '', right = ''] = line.split(' - ');
    const [type = '', , superOptions = ''] = right.split(' ');
    if (matches(type, superOptions)) return left.split(' ')[4];
  }
  return undefined;
};

const makeGroups = (name: string): string => {
  const root = mountPoint((type) => type === 'cgroup2');
  if (!root) throw new Error('no cgroup v2 tree is mounted here; Aether cannot be tested with one');
  const group = join(root, name);
  for (const path of [group, join(group, 'aether'), join(group, 'payload')]) mkdirSync(path);
  for (const path of [join(group, 'cgroup.procs'), join(group, 'payload'), join(group, 'payload/cgroup.procs')]) chownSync(path, UID_BASE, UID_BASE);
  return group;
};

const makePidsGroup = (name: string, limit: number): string => {
  const root = mountPoint((type, options) => type === 'cgroup' && options.split(',').includes('pids'));
  if (!root) throw new Error('no v1 pids hierarchy is mounted here');
  const group = join(root, name);
  mkdirSync(group);
  writeFileSync(join(group, 'pids.max'), String(limit));
  return group;
};

const childGroups = (group: string): string[] =>
  execFileSync('find', [join(group, 'payload'), '-mindepth', '1', '-type', 'd', '-printf', '%f\n'], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

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

export const startAether = async (options: StandOptions = {}): Promise<Stand> => {
  const program = buildStand();
  const dir = mkdtempSync(join(tmpdir(), 'dsec-aether-'));
  chmodSync(dir, 0o777); // commands may leave marks for the test here
  const name = dir.slice(dir.lastIndexOf('dsec-'));
  const execDir = join(dir, 'exec');
  const socketPath = join(dir, 'socket');
  mkdirSync(execDir);
  chownSync(execDir, UID_BASE, UID_BASE);
  const group = (options.cgroups ?? 'v2') === 'v2' ? makeGroups(name) : undefined;
  const pidsGroup = options.pids === undefined ? undefined : makePidsGroup(name, options.pids);
  const gates = pidsGroup === undefined ? [] : [join(pidsGroup, 'cgroup.procs')];
  const args = [join(BUILD, 'dsec-aether'), socketPath, execDir, String(options.lifeSeconds ?? 600), group ?? '-', ...gates];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
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
    commandGroups: () => (group ? childGroups(group) : []),
    kill,
    stop: async () => {
      await kill();
      if (group) {
        for (const path of [...childGroups(group).map((child) => join(group, 'payload', child)), join(group, 'payload'), join(group, 'aether'), group])
          await removeGroup(path);
      }
      if (pidsGroup) await removeGroup(pidsGroup);
      rmSync(dir, { recursive: true, force: true });
    },
  };
};
