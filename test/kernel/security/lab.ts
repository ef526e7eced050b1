/**
 * The attacker's laboratory: a platform whose base layer carries the probes of `probes/*.c`, run inside a sandbox, and on the host as the
 * control that shows a probe can succeed.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { buildLayer } from '#runtime/images/mod.ts';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { makeBusyboxRoot, startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';

const SOURCES = join(import.meta.dirname, 'probes');
const NOBODY = 65_534;
const FLAGS = ['-std=gnu17', '-D_GNU_SOURCE', '-O1', '-Wall', '-Wextra', '-Werror', '-static'];

/** What each attempt came to: `ok …`, the name of an error, `SIG…`, or `timeout`. */
export type Outcomes = ReadonlyMap<string, string>;

const outcomesOf = (text: string): Outcomes =>
  new Map(
    text
      .split('\n')
      .filter((line) => line.includes('\t'))
      .map((line) => line.split('\t', 2) as [string, string]),
  );

const buildProbes = (into: string): void => {
  mkdirSync(into, { recursive: true });
  for (const source of readdirSync(SOURCES).filter((name) => name.endsWith('.c'))) {
    execFileSync(process.env['CC'] ?? 'gcc', [...FLAGS, '-o', join(into, basename(source, '.c')), join(SOURCES, source)], { stdio: 'inherit' });
  }
};

export type Inside = { readonly user?: string; readonly timeoutMs?: number };

export class Lab {
  readonly host: TestPlatform;
  readonly dsec: DsecClient;
  readonly #probes: string;

  private constructor(host: TestPlatform, dsec: DsecClient, probes: string) {
    this.host = host;
    this.dsec = dsec;
    this.#probes = probes;
  }

  /** `furnish` may put more into the root of the base layer `lab`. */
  static async open(furnish: (root: string) => void = () => undefined): Promise<Lab> {
    const probes = mkdtempSync(join(tmpdir(), 'dsec-probes-'));
    let host: TestPlatform | undefined;
    try {
      chmodSync(probes, 0o755);
      buildProbes(join(probes, 'root/probe'));
      makeBusyboxRoot(join(probes, 'root'));
      furnish(join(probes, 'root'));
      host = await startTestPlatform();
      await buildLayer(host.store, { name: 'lab', kind: 'base', source: { type: 'directory', path: join(probes, 'root') } });
      return new Lab(host, await connect({ contextFile: host.platform.contextFile }), probes);
    } catch (thrown) {
      await host?.close();
      rmSync(probes, { recursive: true, force: true });
      throw thrown;
    }
  }

  async sandbox(options: Partial<Parameters<DsecClient['runContainer']>[0]> = {}): Promise<Sandbox> {
    return this.dsec.runContainer({ image: 'lab', memoryLimitMb: 128, ...options });
  }

  /** Runs a probe inside. A probe that itself ends badly is a broken test. */
  async inside(box: Sandbox, argv: readonly [string, ...string[]], options: Inside = {}): Promise<Outcomes> {
    const [probe, ...args] = argv;
    const result = await box.exec([`/probe/${probe}`, ...args], { user: options.user ?? 'root', timeoutMs: options.timeoutMs ?? 60_000 });
    if (result.exitCode !== 0)
      throw new Error(`probe ${argv.join(' ')} ended with ${result.exitCode ?? result.signal}: ${result.stderr}${result.stdout.slice(-500)}`);
    return outcomesOf(result.stdout);
  }

  /** Runs a probe as root of the host, in namespaces that are thrown away. Nothing is dropped there: what is refused, the kernel itself refuses. */
  outside(...[probe, ...args]: [string, ...string[]]): Outcomes {
    const namespaces = ['--mount', '--pid', '--fork', '--mount-proc', '--net', '--ipc', '--uts', '--cgroup'];
    return outcomesOf(execFileSync('unshare', [...namespaces, this.#probePath(probe), ...args], { encoding: 'utf8', timeout: 60_000 }));
  }

  /** As `outside`, on an empty file system of its own, whose path is added to the arguments: nothing of the host's disk is touched. */
  onTmpfs(...[probe, ...args]: [string, ...string[]]): Outcomes {
    const command = ['mount -t tmpfs none /tmp', `exec /proc/self/fd/0 ${args.join(' ')} /tmp`].join(' && ');
    const stdin = openSync(this.#probePath(probe), 'r');
    try {
      return outcomesOf(execFileSync('unshare', ['--mount', 'sh', '-c', command], { encoding: 'utf8', timeout: 60_000, stdio: [stdin, 'pipe', 'inherit'] }));
    } finally {
      closeSync(stdin);
    }
  }

  /** Runs a probe as a process of the host, in none but the host's namespaces. */
  onHost(...[probe, ...args]: [string, ...string[]]): Outcomes {
    return outcomesOf(execFileSync(this.#probePath(probe), args, { encoding: 'utf8', timeout: 60_000 }));
  }

  /** Starts a probe on the host that says a line and stays. Resolves to what ends it. */
  async stayOnHost(...[probe, ...args]: [string, ...string[]]): Promise<() => void> {
    const child = spawn(this.#probePath(probe), args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    if (!line.endsWith('\tok')) throw new Error(`probe ${probe} ${args.join(' ')} on the host: ${line}`);
    return () => child.kill('SIGKILL');
  }

  /** Runs a probe as a user of the host who has no rights. */
  asNobody(...[probe, ...args]: [string, ...string[]]): Outcomes {
    return outcomesOf(execFileSync(this.#probePath(probe), args, { encoding: 'utf8', timeout: 60_000, uid: NOBODY, gid: NOBODY }));
  }

  /** Where a file of the image lies on the host, as it was before the image was built. */
  imagePath(path: string): string {
    return join(this.#probes, 'root', path);
  }

  /** Aether of a sandbox, as the host sees it. */
  async aetherPid(box: Sandbox): Promise<number> {
    const { pid } = await box.refresh();
    if (pid === null) throw new Error(`sandbox ${box.id} has no process`);
    return pid;
  }

  /** One line of a process's `status`. */
  static status(pid: number, field: string): string {
    return new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
  }

  #probePath(name: string): string {
    return join(this.#probes, 'root/probe', name);
  }

  async close(): Promise<void> {
    await this.dsec.close();
    await this.host.close();
    rmSync(this.#probes, { recursive: true, force: true });
  }
}

/** The whole table that a denial gives: each attempt with the one error that answers it. */
export const denied = (errors: Readonly<Record<string, readonly string[]>>): Outcomes =>
  new Map(Object.entries(errors).flatMap(([error, names]) => names.map((name) => [name, error] as [string, string])));

/**
 * Attempts of `tried` that succeeded in none of the controls: a test of these could not fail.
 */
export const neverSucceeded = (tried: Outcomes, controls: readonly Outcomes[]): string[] =>
  [...tried.keys()].filter((name) => !controls.some((control) => control.get(name)?.startsWith('ok')));
