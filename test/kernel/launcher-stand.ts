/**
 * A real launcher for tests: directories, cgroup and images of its own, and an account of what is left at the end.
 *
 * The base image holds one static busybox. `sandbox(n)` launches the n-th sandbox and runs commands in it through its Aether.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecId, LayerDigest } from '#bus/ids.ts';
import { AetherClient } from '#runtime/aether/client.ts';
import type { LauncherClient } from '#runtime/launcher/client.ts';
import type { LaunchSpec } from '#runtime/launcher/answers.ts';
import { ensureLauncher, type LauncherOptions } from '#runtime/launcher/process.ts';
import { projectRoot } from '#runtime/project-root.ts';

const BUILD = join(projectRoot(), 'build/native');
const APPLETS = [
  'sh',
  'cat',
  'ls',
  'id',
  'hostname',
  'head',
  'tail',
  'wc',
  'ip',
  'grep',
  'stat',
  'sleep',
  'true',
  'mkdir',
  'rm',
  'mv',
  'touch',
  'echo',
  'find',
  'readlink',
  'dd',
  'printf',
  'test',
  'ping',
];

export type Output = { readonly code: number; readonly stdout: string; readonly stderr: string };
export type TestSandbox = {
  readonly id: string;
  readonly pid: number;
  readonly box: string;
  run(command: string | readonly string[]): Promise<Output>;
  start(command: string): Promise<void>;
  close(): void;
};

let made = 0;

export class LauncherStand {
  readonly dir = mkdtempSync(join(tmpdir(), 'dsec-launcher-'));
  readonly runDir = join(this.dir, 'run');
  readonly trashDir = join(this.dir, 'trash');
  readonly cgroupName = `dsec-lt-${process.pid}-${++made}`;
  readonly base: { readonly digest: LayerDigest; readonly path: string };
  readonly #flags: readonly string[];
  #client: LauncherClient | undefined;
  #execs = 0;

  constructor(flags: readonly string[] = []) {
    execFileSync(join(projectRoot(), 'node-runtime/native/build.sh'), { stdio: ['ignore', 'ignore', 'inherit'] });
    this.#flags = flags;
    this.base = this.image('base', (root) => {
      for (const sub of ['bin', 'etc', 'root', 'tmp', 'proc', 'sys', 'dev']) mkdirSync(join(root, sub));
      cpSync('/bin/busybox', join(root, 'bin/busybox'));
      for (const applet of APPLETS) symlinkSync('busybox', join(root, 'bin', applet));
      writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
      writeFileSync(join(root, 'etc/hostname'), 'the-builder\n');
    });
  }

  get options(): LauncherOptions {
    return { runDir: this.runDir, cgroupName: this.cgroupName, trashDir: this.trashDir, epoch: 1, binDir: BUILD, flags: this.#flags };
  }

  get client(): LauncherClient {
    if (!this.#client) throw new Error('connect first');
    return this.#client;
  }

  async connect(epoch = 1): Promise<LauncherClient> {
    this.#client = await ensureLauncher({ ...this.options, epoch });
    await this.#client.mountImage(this.base.digest, this.base.path);
    return this.#client;
  }

  /** Builds an image of what `fill` puts into a directory. */
  image(name: string, fill: (root: string) => void): { readonly digest: LayerDigest; readonly path: string } {
    const root = join(this.dir, `${name}.root`);
    const path = join(this.dir, `${name}.erofs`);
    mkdirSync(root);
    fill(root);
    execFileSync('mkfs.erofs', ['-T0', path, root], { stdio: 'ignore' });
    rmSync(root, { recursive: true });
    return { path, digest: `sha256:${createHash('sha256').update(readFileSync(path)).digest('hex')}` as LayerDigest };
  }

  spec(n: number, overrides: Partial<LaunchSpec> = {}): LaunchSpec {
    const box = this.box(n);
    mkdirSync(join(this.dir, 'boxes'), { recursive: true });
    return {
      id: this.id(n),
      hostname: `box-${n}`,
      slot: n,
      layers: [this.base.digest],
      upper: join(box, 'upper'),
      work: join(box, 'work'),
      execDir: join(box, 'exec'),
      socket: join(this.dir, `${n}.sock`),
      memoryMiB: 64,
      cpuMillis: 1_000,
      pids: 64,
      lifeSeconds: 120,
      ...overrides,
    };
  }

  id(n: number): string {
    return `sb-0-${n.toString(16).padStart(20, '0')}-edge`;
  }

  box(n: number): string {
    return join(this.dir, 'boxes', String(n));
  }

  async sandbox(n: number, overrides: Partial<LaunchSpec> = {}): Promise<TestSandbox> {
    const spec = this.spec(n, overrides);
    const { pid } = await this.client.launch(spec);
    return this.attach(n, pid, spec);
  }

  /** Connects to the Aether of a sandbox that lives. */
  async attach(n: number, pid: number, spec = this.spec(n)): Promise<TestSandbox> {
    const ended = new Map<string, (waitStatus: number) => void>();
    const aether = await AetherClient.connect(spec.socket, {
      progress() {},
      exit: ({ execId, waitStatus }) => ended.get(execId)?.(waitStatus),
      startFailed() {},
      close() {},
    });
    if (!aether) throw new Error(`nobody listens at ${spec.socket}`);
    const start = async (execId: ExecId, command: string | readonly string[]): Promise<void> => {
      const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
      const env = { PATH: '/bin' };
      await aether.start({
        execId,
        argv,
        env,
        cwd: '/',
        user: 'root',
        stdin: 'none',
        stdinBytes: new Uint8Array(),
        timeoutMs: 30_000,
        outputLimitBytes: 1 << 20,
      });
    };
    const run = async (command: string | readonly string[]): Promise<Output> => {
      const execId = this.#nextExec();
      const exit = new Promise<number>((resolve) => ended.set(execId, resolve));
      await start(execId, command);
      const waitStatus = await exit;
      const text = (name: string): string => textOf(join(spec.execDir, `${execId}.${name}`));
      return { code: (waitStatus & 0x7f) === 0 ? waitStatus >> 8 : 128 + (waitStatus & 0x7f), stdout: text('out'), stderr: text('err') };
    };
    return { id: spec.id, pid, box: this.box(n), run, start: (command) => start(this.#nextExec(), command), close: () => aether.close() };
  }

  #nextExec(): ExecId {
    this.#execs += 1;
    return `ex-${this.#execs.toString(16).padStart(24, '0')}` as ExecId;
  }

  /** What exists of sandboxes: processes in the launcher's cgroups, their directories, sockets, records. Empty after everything was destroyed. */
  leftovers(): string[] {
    const groups = cgroupRoots(this.cgroupName).flatMap((root) => directoriesBelow(root));
    const sockets = readdirSync(this.dir).filter((name) => name.endsWith('.sock'));
    const records = existsSync(join(this.runDir, 'sandboxes')) ? readdirSync(join(this.runDir, 'sandboxes')) : [];
    const boxes = existsSync(join(this.dir, 'boxes')) ? readdirSync(join(this.dir, 'boxes')) : [];
    const uppers = boxes.flatMap((box) => readdirSync(join(this.dir, 'boxes', box)).filter((name) => name !== 'exec'));
    return [...groups, ...sockets, ...records, ...uppers];
  }

  /** Destroys what lives, ends the launcher, removes the directory. Returns what was left beyond that. */
  async close(): Promise<string[]> {
    const client = await this.connect(Number.MAX_SAFE_INTEGER);
    for (const { id } of await client.list()) await client.destroy({ id });
    await client.quit();
    client.close();
    const left = [...this.leftovers(), ...cgroupRoots(this.cgroupName)];
    rmSync(this.dir, { recursive: true, force: true });
    return left;
  }
}

/** A stream that nobody wrote to has no file. */
const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');

/** The launcher's directory in every mounted hierarchy. */
const cgroupRoots = (name: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => join(line.split(' ')[4] ?? '', name))
    .filter((path) => existsSync(path));

const directoriesBelow = (root: string): string[] =>
  readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(root, entry.name));
