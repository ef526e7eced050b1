/** A handle to one sandbox: commands in it and its life cycle. Holds no connection state of its own. @paper §2.1 §2.3 */
import type { Decision } from '#bus/api/schema.ts';
import type { Duplex } from 'node:stream';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, ExecId, type SandboxId, parseSandboxId } from '#bus/ids.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import type { PortTarget } from '#bus/op/ports.ts';
import type { ExecView } from '#bus/op/schema.ts';
import type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
import type { DurationMs } from '#bus/units.ts';
import { type HistoryOptions, type StoredCommit, commitHistory } from './commit-history.ts';
import { Command, runCommand, startCommand } from './exec/command.ts';
import { type ExecOptions, type StartOptions, execOrder, startOrder } from './exec/exec-options.ts';
import type { ExecResult } from './exec/exec-result.ts';
import { type ForkOptions, forkSandbox } from './fork.ts';
import type { Group } from './group.ts';
import { SandboxFiles } from './files/sandbox-files.ts';
import { type FetchInit, fetchInside } from './ports/fetch.ts';
import { PortConnection } from './ports/port-connection.ts';
import type { Session } from './session.ts';
import { SHELL_ARGV } from './shell/script.ts';
import { Shell } from './shell/shell.ts';
import { type Snapshot, type SnapshotOptions, takeSnapshot } from './snapshot.ts';
import { type Goal, type SettleOptions, commandAndSettle } from './transition.ts';
import { randomKey } from './transport/clock.ts';
import { noSandbox } from './transport/losses.ts';

/** Directory, variables and user that a shell begins with. */
export type ShellOptions = Pick<StartOptions, 'cwd' | 'env' | 'user' | 'key' | 'signal'>;
type Keyed = { readonly key?: string | undefined };
export type NewLives = {
  readonly ttlTotal?: number | undefined;
  readonly ttlRunning?: number | null | undefined;
  readonly ttlRunningStop?: number | null | undefined;
  readonly ttlRunningPause?: number | null | undefined;
};

export class Sandbox {
  readonly id: SandboxId;
  /** Its files. */
  readonly files: SandboxFiles;
  readonly #session: Session;
  #state: SandboxState | undefined;
  #ended = false;

  constructor(session: Session, id: SandboxId, state?: SandboxState) {
    this.#session = session;
    this.id = id;
    this.files = new SandboxFiles({ ops: session.ops, sandboxId: id });
    this.#state = state;
  }

  /** Newest state this handle has seen; undefined before the first `refresh` of a handle made from an id. */
  get state(): SandboxState | undefined {
    return this.#state;
  }
  get status(): SandboxStatus | undefined {
    return this.#state?.status;
  }

  /** Asks for the newest state. SANDBOX_NOT_FOUND when the project has no such sandbox. */
  async refresh(): Promise<SandboxState> {
    const { sandboxes } = await this.#session.api.call('get', { ids: [this.id] });
    const view = sandboxes[0];
    if (!view) throw noSandbox(this.id, this.#session.project);
    this.#session.saw(parseSandboxId(this.id).shard, view.streamSequence);
    this.#state = view.state;
    return view.state;
  }

  /** Runs a program and waits for its end. A failing program is a result, not an error; `result.ok` tells. */
  exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return this.#checked(() => runCommand(this.#session, this.id, execOrder({ argv }, options)));
  }

  /** Runs a script with the image's `/bin/sh -c`. */
  runShell(script: string, options: ExecOptions = {}): Promise<ExecResult> {
    return this.#checked(() => runCommand(this.#session, this.id, execOrder({ shell: script }, options)));
  }

  /** Starts a program (argv) or a shell script (string) and returns while it runs. */
  start(program: readonly string[] | string, options: StartOptions = {}): Promise<Command> {
    const order = () => startOrder(typeof program === 'string' ? { shell: program } : { argv: program }, options);
    return this.#checked(() => startCommand(this.#session, this.id, order()));
  }

  /** Opens a shell that keeps its directory, variables and functions from script to script: the image's bash, else its `/bin/sh`. */
  openShell(options: ShellOptions = {}): Promise<Shell> {
    return this.#checked(async () => {
      const order = startOrder({ argv: SHELL_ARGV }, { ...options, stdin: 'open', onFull: 'roll' });
      return new Shell(await startCommand(this.#session, this.id, order), this.#session.clock);
    });
  }

  /**
   * Sends an HTTP request to a server inside: at a port of the sandbox's loopback, or at the path of a unix socket. PORT_CLOSED when
   * nothing listens there, CONNECTION_BROKEN when the server broke off, DEADLINE_EXCEEDED after `timeoutMs`. Never sent twice.
   */
  fetch(target: PortTarget, path: string, init: FetchInit = {}): Promise<Response> {
    return this.#checked(() => fetchInside(this.#session, this.id, target, path, init));
  }

  /** Connects to a server inside and leaves its bytes alone: a stream in both directions. */
  connectPort(target: PortTarget, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Duplex> {
    return this.#checked(() => PortConnection.open(this.#session, this.id, target, options.signal));
  }

  /** A handle to a command that runs or has run here. Asks nobody: an unknown id shows at the first use. */
  attach(execId: string): Command {
    const parsed = ExecId.safeParse(execId);
    if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'execId', parsed.error);
    return new Command(this.#session, this.id, parsed.data);
  }

  /** Commands that the sandbox knows, running and ended. */
  async commands(): Promise<readonly ExecView[]> {
    return (await this.#session.ops.call(this.id, 'list', {})).data.execs;
  }

  /** Ends it, and waits until nothing of it is left on the node. Legal in every state, and repeatable. */
  async stop(options: SettleOptions & Keyed = {}): Promise<SandboxState | null> {
    return this.#settle({ verb: 'stop', reached: () => false, endIsGoal: true }, options);
  }

  /** As `stop`, and its record is forgotten when the retention is over. */
  async delete(options: SettleOptions & Keyed = {}): Promise<SandboxState | null> {
    return this.#settle({ verb: 'delete', reached: () => false, endIsGoal: true }, options);
  }

  /**
   * Freezes every process and gives its memory back to the node; whatever needs its inside (a command, a file, a port, input) resumes it first,
   * looking at what is there does not. Time-outs of commands stand meanwhile, the total life goes on. @paper §6.3
   */
  async pause(options: SettleOptions & Keyed = {}): Promise<void> {
    await this.#settle({ verb: 'pause', reached: (state) => state.status === 'paused', endIsGoal: false }, options);
  }

  async resume(options: SettleOptions & Keyed = {}): Promise<void> {
    await this.#settle({ verb: 'resume', reached: (state) => state.status === 'running', endIsGoal: false }, options);
  }

  /**
   * Makes a layer of what the sandbox has written; it stands still for a moment and goes on. The same id names the same snapshot, in
   * the whole project. New sandboxes start from it with `image: {snapshot: id}`. @paper §6.1
   *
   * UNPORTABLE_FILE names what cannot be kept as it is, NO_SPACE and INVALID_STATE leave everything as it was, KEY_CONFLICT says
   * that the id is another sandbox's.
   */
  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    return takeSnapshot(this.#session, this.id, options);
  }

  /**
   * Makes `count` sandboxes that begin with its files as they are now: up to 256, each with its own limits, lives and network, by
   * default those of this one. What each became is in the group; the call itself throws SANDBOX_NOT_FOUND, SANDBOX_ENDED, INVALID_STATE
   * (stopping), JOB_ENDED, KEY_CONFLICT, and what the capture failed with (UNPORTABLE_FILE, NO_SPACE), and nothing was made. @paper §6.1
   */
  async fork(count: number, options: ForkOptions = {}): Promise<Group> {
    return forkSandbox(this.#session, this.id, count, options);
  }

  /**
   * New lives in seconds, counted from now: `ttlTotal` until it ends whatever it does, `ttlRunning` without a pause,
   * `ttlRunningStop` without a command, `ttlRunningPause` without a command until it is paused; null takes a limit away. The answer's `lives` say what was granted, in absolute time.
   * LIMIT_OUT_OF_RANGE above the platform's longest life, INVALID_STATE or SANDBOX_ENDED when its end came first.
   */
  async extend(lives: NewLives, options: Keyed = {}): Promise<Decision> {
    const totalMs = lifeMs('ttlTotal', lives.ttlTotal);
    const runningMs = lifeMs('ttlRunning', lives.ttlRunning);
    const idleMs = lifeMs('ttlRunningStop', lives.ttlRunningStop);
    const idlePauseMs = lifeMs('ttlRunningPause', lives.ttlRunningPause);
    const wire = Object.fromEntries(Object.entries({ totalMs, runningMs, idleMs, idlePauseMs }).filter(([, value]) => value !== undefined));
    if (Object.keys(wire).length === 0) {
      const fields = ['ttlTotal', 'ttlRunning', 'ttlRunningStop', 'ttlRunningPause'];
      throw DsecError.of('INVALID_ARGUMENT', `lives: name at least one of ${fields.join(', ')}`, { details: { fields } });
    }
    return this.#session.api.call('extend', { id: this.id, key: (options.key ?? randomKey()) as ClientKey, ...wire });
  }

  /** The commits of its life, oldest first, each with the events and the state they led to. */
  events(options: HistoryOptions = {}): AsyncIterable<StoredCommit> {
    return commitHistory(this.#session, this.id, options);
  }

  /** `await using` stops it, unless this handle has seen it end. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return;
    try {
      await this.stop();
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || !['SANDBOX_NOT_FOUND', 'SANDBOX_ENDED'].includes(thrown.code)) throw thrown;
    }
  }

  async #settle(goal: Goal, options: SettleOptions & Keyed): Promise<SandboxState | null> {
    const key = (options.key ?? randomKey()) as ClientKey;
    const giveUpAfterMs = options.timeoutMs;
    const send = async (): Promise<Decision> => this.#session.api.call(goal.verb as 'stop', { id: this.id, key }, { giveUpAfterMs, signal: options.signal });
    const state = await commandAndSettle(this.#session, this.id, goal, send, options);
    if (state) this.#state = state;
    this.#ended ||= goal.endIsGoal;
    return state;
  }

  /** Errors of options are rejections like every other error, never thrown past the promise. */
  async #checked<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}

const lifeMs = <T extends null | undefined>(field: string, value: number | T): DurationMs | T => {
  if (typeof value !== 'number') return value;
  const ms = Math.round(value * 1_000);
  if (ms >= SPEC_LIMITS.lifeMsMin && ms <= SPEC_LIMITS.lifeMsMax) return ms as DurationMs;
  const range = `${SPEC_LIMITS.lifeMsMin / 1_000} to ${SPEC_LIMITS.lifeMsMax / 1_000} seconds`;
  throw DsecError.of(ms > SPEC_LIMITS.lifeMsMax ? 'LIMIT_OUT_OF_RANGE' : 'INVALID_ARGUMENT', `${field}: must be ${range}`, { details: { fields: [field] } });
};
