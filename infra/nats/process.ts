/**
 * The nats-server child of a single machine: started, watched, restarted with back-off, stopped in order.
 *
 * Does not decide what the server is configured to do (`config.ts`) nor where things lie (`embedded.ts`).
 *
 * INV-BUS-ONE: at most one server has the store open. The child holds a lock on it for as long as it lives, so a new one waits for
 * the last one's end. INV-BUS-CHILD: the server ends with the process that started it, also when that one is killed: the kernel
 * sends it SIGTERM. Start it from the main thread: the kernel means the death of the thread that started it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { DsecError } from '#bus/errors.ts';
import { greetingOf } from './greeting.ts';
import { PROCESS_LIMITS } from './limits.ts';

export type ServerEvent =
  | { readonly type: 'ready'; readonly pid: number; readonly version: string; readonly tookMs: number }
  | { readonly type: 'hung'; readonly pid: number; readonly greetingsMissed: number }
  | { readonly type: 'exited'; readonly pid: number; readonly code: number | null; readonly signal: string | null; readonly restartInMs: number }
  | { readonly type: 'restartFailed'; readonly error: DsecError }
  | { readonly type: 'stopped'; readonly pid: number; readonly forced: boolean };

export type ServerOptions = {
  readonly program: string;
  readonly configFile: string;
  /** As in the configuration: tells our server from a stranger on the same port. */
  readonly serverName: string;
  readonly port: number;
  /** Where it listens; loopback by default. */
  readonly host?: string;
  readonly lockFile: string;
  /** What the server says before its configured log is open: why it would not start. */
  readonly startLog: string;
  /** Told of everything that happens, so that no death goes unnoticed. */
  readonly onEvent: (event: ServerEvent) => void;
  /** For tests that wait for a hung server. */
  readonly limits?: { readonly healthIntervalMs: number; readonly greetingTimeoutMs: number; readonly greetingsMissed: number };
};

const LOCKED_EXIT = 75;
/** `setpriv` arms the parent-death signal; this step ends at once when the parent had died before that, else becomes the server. */
const WITH_PARENT = 'test "$PPID" = "$1" || exit 74; shift; exec "$@"';

export class NatsServer {
  readonly #options: ServerOptions;
  readonly #stop = new AbortController();
  readonly #supervision: Promise<void>;
  #child: ChildProcess;

  /** Resolves when the server is ready; rejects with HOST_UNFIT or BUS_MISCONFIGURED when it cannot be. */
  static async start(options: ServerOptions): Promise<NatsServer> {
    const child = launch(options);
    await becomesReady(child, options);
    return new NatsServer(options, child);
  }

  private constructor(options: ServerOptions, child: ChildProcess) {
    this.#options = options;
    this.#child = child;
    this.#supervision = this.#supervise();
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Reads its configuration again; one that is just starting reads it anyway. */
  reload(): void {
    if (!hasEnded(this.#child)) this.#child.kill('SIGHUP');
  }

  /** SIGTERM, and SIGKILL for one that does not obey. Resolves when the process is gone. Repeatable. */
  async stop(): Promise<void> {
    if (this.#stop.signal.aborted) return this.#supervision;
    this.#stop.abort();
    const forced = await endOf(this.#child, PROCESS_LIMITS.stopTimeoutMs);
    await this.#supervision;
    this.#options.onEvent({ type: 'stopped', pid: this.pid, forced });
  }

  async #supervise(): Promise<void> {
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      const livedMs = await this.#untilDeath();
      if (this.#stop.signal.aborted) return;
      failures = livedMs > PROCESS_LIMITS.stableAfterMs ? 1 : failures + 1;
      const restartInMs = Math.min(PROCESS_LIMITS.restartFirstMs * 2 ** (failures - 1), PROCESS_LIMITS.restartMaxMs);
      const { exitCode: code, signalCode: signal } = this.#child;
      this.#options.onEvent({ type: 'exited', pid: this.pid, code, signal, restartInMs });
      await delay(restartInMs, undefined, { signal: this.#stop.signal }).catch(() => {});
      if (!this.#stop.signal.aborted) await this.#restart();
    }
  }

  async #restart(): Promise<void> {
    this.#child = launch(this.#options);
    try {
      await becomesReady(this.#child, this.#options);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.onEvent({ type: 'restartFailed', error: error as DsecError });
    }
  }

  /** Asks the server for its greeting now and then; one that misses too many is killed, which is a death like any other. */
  async #untilDeath(): Promise<number> {
    const child = this.#child;
    const { healthIntervalMs, greetingTimeoutMs, greetingsMissed } = this.#options.limits ?? PROCESS_LIMITS;
    const sinceMs = performance.now();
    const death = hasEnded(child) ? Promise.resolve() : once(child, 'exit').then(() => {});
    let missed = 0;
    while (!hasEnded(child)) {
      await Promise.race([death, delay(healthIntervalMs, undefined, { ref: false, signal: this.#stop.signal }).catch(() => death)]);
      if (hasEnded(child) || this.#stop.signal.aborted) break;
      const greeting = await greetingOf(this.#options.port, greetingTimeoutMs, this.#options.host);
      missed = greeting ? 0 : missed + 1;
      if (missed < greetingsMissed) continue;
      this.#options.onEvent({ type: 'hung', pid: this.pid, greetingsMissed: missed });
      child.kill('SIGKILL');
      await death;
    }
    await death;
    return performance.now() - sinceMs;
  }
}

/**
 * On a small machine the server shares its cores with everything it serves: threads that hand single messages to one another
 * cost more than they bring. Measured with create + exec + stop on two cores: a fifth less processor time with one.
 */
const serverThreads = (): number => Math.max(1, Math.floor(availableParallelism() / 2));

const launch = ({ program, configFile, lockFile, startLog }: ServerOptions): ChildProcess => {
  const log = openSync(startLog, 'w', 0o600);
  try {
    const lock = ['flock', '--no-fork', '--wait', String(PROCESS_LIMITS.lockWaitSeconds), '--conflict-exit-code', String(LOCKED_EXIT), lockFile];
    const guarded = ['--pdeathsig', 'TERM', 'sh', '-c', WITH_PARENT, 'sh', String(process.pid), ...lock, program, '--config', configFile];
    // Own session: Ctrl-C in a terminal reaches the platform, which then ends its roles before their bus.
    const child = spawn('setpriv', guarded, { stdio: ['ignore', log, log], detached: true, env: { GOMAXPROCS: String(serverThreads()), ...process.env } });
    child.on('error', () => {}); // seen as an end without a pid
    return child;
  } finally {
    closeSync(log);
  }
};

const becomesReady = async (child: ChildProcess, options: ServerOptions): Promise<void> => {
  const sinceMs = performance.now();
  for (;;) {
    const greeting = await greetingOf(options.port, PROCESS_LIMITS.greetingTimeoutMs, options.host);
    const tookMs = Math.round(performance.now() - sinceMs);
    if (hasEnded(child)) throw await startFailure(child, options);
    if (greeting?.server_name === options.serverName && greeting.jetstream) {
      options.onEvent({ type: 'ready', pid: child.pid ?? -1, version: greeting.version, tookMs });
      return;
    }
    if (tookMs > PROCESS_LIMITS.readyTimeoutMs) {
      await endOf(child, 0);
      throw DsecError.of(
        'HOST_UNFIT',
        `nats-server was not ready on port ${options.port} within ${PROCESS_LIMITS.readyTimeoutMs / 1_000} s; its log is named in ${options.configFile}`,
      );
    }
    await delay(PROCESS_LIMITS.readyPollMs);
  }
};

const startFailure = async (child: ChildProcess, { lockFile, startLog, configFile, program }: ServerOptions): Promise<DsecError> => {
  if (child.pid === undefined) return DsecError.of('HOST_UNFIT', 'setpriv cannot be started; install the package util-linux or run infra/setup/setup.sh');
  if (child.exitCode === LOCKED_EXIT)
    return DsecError.of(
      'HOST_UNFIT',
      `another nats-server still has the store of ${lockFile} open; stop the platform that uses this data directory, or name another one`,
    );
  const said = (await readFile(startLog, 'utf8').catch(() => '')).trim().split('\n').slice(-3).join(' | ');
  return DsecError.of(
    'BUS_MISCONFIGURED',
    `nats-server ended at start with ${child.exitCode ?? child.signalCode}: ${said || `see the log named in ${configFile}`}. To see it by hand: ${program} -c ${configFile}`,
  );
};

const hasEnded = (child: ChildProcess): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

/** Ends a child and waits for it; true when it took SIGKILL. */
const endOf = async (child: ChildProcess, patienceMs: number): Promise<boolean> => {
  if (hasEnded(child)) return false;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const obeyed = await Promise.race([ended.then(() => true), delay(patienceMs, false, { ref: false })]);
  if (!obeyed) child.kill('SIGKILL');
  await ended;
  return !obeyed;
};
