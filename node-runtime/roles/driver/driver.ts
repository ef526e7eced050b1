/**
 * Runs an `ActorHost` against the real ports: promises become inputs, outputs become I/O.
 *
 * Decides nothing about actors. Owns three kinds of pending work, all derived from durable state: appends being repeated
 * until their outcome is known, effects by key, and one timer per actor for its nearest deadline.
 */
import { DsecError, toWireError, type WireError } from '#bus/errors.ts';
import { type ActorAddress, commitSubject } from '#bus/subjects.ts';
import { traceIdOf } from '#bus/trace-context.ts';
import type { ActorDefinition, Deadline, Effect } from '#actors/kernel/definition.ts';
import { ActorHost, type CommandMeta, type CommandResult, type HostInput, type HostOutput } from '#actors/kernel/host.ts';
import { backoffMs, changesOfWork, deadlineMeta, reportMeta } from '#actors/kernel/work.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { Log, LogFields } from '../../log/log.ts';
import { DRIVER_LIMITS } from './limits.ts';

export type EffectContext<S> = { readonly address: ActorAddress; readonly state: S; readonly stored: StoredCommit; readonly signal: AbortSignal };

export type DriverOptions<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> = {
  readonly definition: ActorDefinition<S, C, E, F>;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Does the work and returns the command that reports it, or null when nothing is to be reported. A thrown error means
   * "try again later"; what is final comes back as a report. Must be harmless when repeated.
   */
  readonly runEffect: (effect: F, context: EffectContext<S>) => Promise<C | null>;
  readonly deadlineCommand: (deadline: Deadline, state: S) => C;
  /** False where deadlines are served by somebody else. */
  readonly armDeadlines?: boolean;
  /** When a deadline is really due; later than `deadline.at` when activity that is not committed moves it. */
  readonly dueAt?: (deadline: Deadline, state: S) => number;
  /**
   * Whether this process does the work of an actor; one that only decides for it leaves effects and deadlines to whoever does.
   * Default: always.
   */
  readonly doesWork?: (address: ActorAddress) => boolean;
  /** Called after each durable change, before effects start; must not throw. */
  readonly onAdopted?: (state: S, stored: StoredCommit, over: boolean) => void;
};

/** The reason of every abort: without one, each makes an exception with a stack that nobody looks at. */
const OVERTAKEN = 'overtaken by a newer state';

/** One effect under way. */
class Running {
  #abort: AbortController | undefined;
  #isOvertaken = false;

  get isOvertaken(): boolean {
    return this.#isOvertaken;
  }

  /** Made when it is first asked for: a controller costs more than a short effect does, and most effects never look. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isOvertaken) this.#abort.abort(OVERTAKEN);
    return this.#abort.signal;
  }

  overtake(): void {
    this.#isOvertaken = true;
    this.#abort?.abort(OVERTAKEN);
  }
}
type ActorWork = { readonly effects: Map<string, Running>; timer: NodeJS.Timeout | undefined; deadlines: readonly Deadline[] };

class EffectUnderWay<S> implements EffectContext<S> {
  readonly address: ActorAddress;
  readonly state: S;
  readonly stored: StoredCommit;
  readonly #running: Running;

  constructor(address: ActorAddress, { state, stored }: { readonly state: S; readonly stored: StoredCommit }, running: Running) {
    this.address = address;
    this.state = state;
    this.stored = stored;
    this.#running = running;
  }

  get signal(): AbortSignal {
    return this.#running.signal;
  }
}

export class ActorDriver<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly #options: DriverOptions<S, C, E, F>;
  readonly #host: ActorHost<S, C, E, F>;
  readonly #waiting = new Map<number, (result: CommandResult) => void>();
  readonly #work = new Map<string, ActorWork>();
  readonly #retries = new Set<NodeJS.Timeout>();
  #nextToken = 1;
  #closed = false;

  constructor(options: DriverOptions<S, C, E, F>) {
    this.#options = options;
    this.#host = new ActorHost(options.definition);
  }

  /**
   * Gives a command to an actor; resolves when the decision is durable (or needs no commit). Never rejects. `birth` saves the
   * read of an actor that most likely does not exist.
   */
  submit(address: ActorAddress, command: C, meta: CommandMeta, { birth = false } = {}): Promise<CommandResult> {
    if (this.#closed)
      return Promise.resolve({ ok: false, error: toWireError(DsecError.of('EDGE_UNAVAILABLE', 'this process is shutting down; repeat with the same key')) });
    const startedAtMs = this.#options.clock.monotonicMs();
    return new Promise((resolve) => {
      const token = this.#nextToken++;
      this.#waiting.set(token, (result) => {
        this.#sayDecided(address, command, meta, result, startedAtMs);
        resolve(result);
      });
      this.#step({ type: 'command', address, command, meta, token, birth });
    });
  }

  /** Takes an actor from its last commit, as found at start: its pending effects begin. */
  adopt(stored: StoredCommit): void {
    this.#step({ type: 'loaded', address: stored.address, stored });
  }

  peek(address: ActorAddress): { readonly state: S; readonly stored: StoredCommit } | undefined {
    return this.#host.peek(address);
  }

  /** Forgets an idle actor that has no work left; false while it is busy. */
  evict(address: ActorAddress): boolean {
    const key = commitSubject(address);
    if ((this.#work.get(key)?.effects.size ?? 0) > 0 || !this.#host.evict(address)) return false;
    clearTimeout(this.#work.get(key)?.timer);
    this.#work.delete(key);
    return true;
  }

  /** Lets go of an actor's work, which another process does from now on, and of the actor as soon as it is idle. */
  release(address: ActorAddress): void {
    const key = commitSubject(address);
    const work = this.#work.get(key);
    for (const running of work?.effects.values() ?? []) running.overtake();
    clearTimeout(work?.timer);
    this.#work.delete(key);
    this.#host.evict(address);
  }

  /** Aborts effects and timers. Whatever was pending is derived again from the log by the next process. */
  close(): void {
    this.#closed = true;
    for (const { effects, timer } of this.#work.values()) {
      clearTimeout(timer);
      for (const running of effects.values()) running.overtake();
    }
    for (const timer of this.#retries) clearTimeout(timer);
    this.#work.clear();
    for (const resolve of this.#waiting.values())
      resolve({ ok: false, error: toWireError(DsecError.of('EDGE_UNAVAILABLE', 'this process is shutting down; repeat with the same key')) });
    this.#waiting.clear();
  }

  #step(input: HostInput<C>): void {
    if (this.#closed) return;
    for (const output of this.#host.step(input)) this.#perform(output);
  }

  #perform(output: HostOutput<S, F>): void {
    switch (output.type) {
      case 'load':
        this.#load(output.address);
        break;
      case 'append':
        this.#append(output);
        break;
      case 'recall':
        this.#recall(output);
        break;
      case 'reply': {
        const resolve = this.#waiting.get(output.token);
        this.#waiting.delete(output.token);
        resolve?.(output.result);
        break;
      }
      case 'adopted':
        this.#adopted(output);
        break;
    }
  }

  /** The canonical line of a command; what is measured of decisions is counted from it. */
  #sayDecided({ kind, id: actorId }: ActorAddress, { type }: C, { commandId, traceparent }: CommandMeta, result: CommandResult, startedAtMs: number): void {
    const durationMs = this.#options.clock.monotonicMs() - startedAtMs;
    const said = result.ok ? { outcome: result.decision, version: result.version } : { outcome: result.error.outcome, code: result.error.code };
    this.#options.log.debug('command.decided', { kind, type, ...said, durationMs, actorId, commandId, traceId: traceIdOf(traceparent) });
  }

  #load(address: ActorAddress): void {
    this.#read(
      () => this.#options.eventLog.last(address),
      (stored) => this.#step({ type: 'loaded', address, stored }),
      (error) => this.#step({ type: 'loadFailed', address, error }),
    );
  }

  #recall({ address, afterVersion, limit }: Extract<HostOutput<S, F>, { type: 'recall' }>): void {
    this.#read(
      () => this.#options.eventLog.history(address, afterVersion, limit),
      (commits) => this.#step({ type: 'recalled', address, commits }),
      (error) => this.#step({ type: 'recallFailed', address, error }),
    );
  }

  /** Reads of the log are repeated a few times before whoever waits is told. */
  #read<T>(read: () => Promise<T>, done: (value: T) => void, failed: (error: WireError) => void, attempt = 1): void {
    read().then(done, (thrown: unknown) => {
      if (attempt < DRIVER_LIMITS.loadAttempts) this.#later(DRIVER_LIMITS.loadRetryMs, () => this.#read(read, done, failed, attempt + 1));
      else failed(toWireError(thrown));
    });
  }

  #append({ request, repetition }: Extract<HostOutput<S, F>, { type: 'append' }>): void {
    const send = () =>
      this.#options.eventLog.append(request).then(
        (outcome) => this.#step({ type: 'appended', address: request.address, outcome }),
        (thrown: unknown) => this.#step({ type: 'appended', address: request.address, outcome: { outcome: 'unknown', error: toWireError(thrown) } }),
      );
    if (repetition === 0) void send();
    else {
      this.#options.log.warn('append.repeated', {
        actorId: request.address.id,
        version: request.commit.version,
        commandId: request.commit.commandId,
        repetition,
      });
      this.#later(backoffMs(repetition, DRIVER_LIMITS.appendRetryMinMs, DRIVER_LIMITS.appendRetryMaxMs), send);
    }
  }

  #adopted({ address, state, stored, effects, deadlines, over }: Extract<HostOutput<S, F>, { type: 'adopted' }>): void {
    this.#options.onAdopted?.(state, stored, over);
    if (this.#options.doesWork?.(address) === false) return;
    const key = commitSubject(address);
    const work = this.#work.get(key) ?? { effects: new Map<string, Running>(), timer: undefined, deadlines: [] };
    this.#work.set(key, work);
    const { stop, start } = changesOfWork(work.effects.keys(), effects);
    for (const effectKey of stop) {
      work.effects.get(effectKey)?.overtake();
      work.effects.delete(effectKey);
    }
    for (const effect of start) this.#start(work, effect, address);
    work.deadlines = deadlines;
    this.#arm(address, work);
    if (over && work.effects.size === 0 && deadlines.length === 0) this.#work.delete(key);
  }

  #start(work: ActorWork, effect: F, address: ActorAddress): void {
    const running = new Running();
    work.effects.set(effect.key, running);
    void this.#runUntilReported(effect, address, running).finally(() => {
      if (work.effects.get(effect.key) === running) work.effects.delete(effect.key);
    });
  }

  async #runUntilReported(effect: F, address: ActorAddress, running: Running): Promise<void> {
    for (let repetition = 1; !running.isOvertaken; repetition += 1) {
      const held = this.#host.peek(address);
      if (!held) return;
      const startedAt = this.#options.clock.monotonicMs();
      try {
        const report = await this.#options.runEffect(effect, new EffectUnderWay(address, held, running));
        this.#options.log.debug('effect.done', { ...this.#lineOf(effect, held.stored, startedAt), outcome: 'applied', report: report?.type });
        if (!report || running.isOvertaken) return;
        const result = await this.submit(address, report, reportMeta(effect, held.stored, this.#options.clock.now()));
        if (result.ok || result.error.retry === 'never' || this.#closed) return;
        this.#options.log.warn('report.refused', { effect: effect.key, actorId: address.id, code: result.error.code });
      } catch (thrown) {
        if (running.isOvertaken) return;
        const error = toWireError(thrown);
        const { code, outcome, message } = error;
        this.#options.log.warn('effect.failed', { ...this.#lineOf(effect, held.stored, startedAt), outcome, code, message, repetition });
      }
      await this.#pause(backoffMs(repetition, DRIVER_LIMITS.effectRetryMinMs, DRIVER_LIMITS.effectRetryMaxMs), running.signal);
    }
  }

  #lineOf({ key, type }: F, { commit }: StoredCommit, startedAtMs: number): LogFields {
    const durationMs = Math.round((this.#options.clock.monotonicMs() - startedAtMs) * 100) / 100;
    const { actorId, version, commandId, traceparent } = commit;
    return { effect: key, type, durationMs, actorId, version, commandId, traceId: traceIdOf(traceparent) };
  }

  /** One timer per actor, at its nearest deadline. */
  #arm(address: ActorAddress, work: ActorWork): void {
    clearTimeout(work.timer);
    work.timer = undefined;
    const held = this.#host.peek(address);
    if (!held || work.deadlines.length === 0 || this.#options.armDeadlines === false) return;
    const nearest = Math.min(...work.deadlines.map((d) => this.#dueAt(d, held.state)));
    const waitMs = Math.min(DRIVER_LIMITS.timerMaxMs, Math.max(0, nearest - this.#options.clock.now()));
    work.timer = setTimeout(() => void this.#onTimer(address, work), waitMs);
    work.timer.unref();
  }

  async #onTimer(address: ActorAddress, work: ActorWork): Promise<void> {
    const held = this.#host.peek(address);
    if (!held || this.#closed) return;
    const now = this.#options.clock.now();
    for (const deadline of work.deadlines) {
      if (this.#dueAt(deadline, held.state) > now) continue;
      const meta = deadlineMeta(address, deadline, held.stored, now);
      const result = await this.submit(address, this.#options.deadlineCommand(deadline, held.state), meta);
      if (result.ok && result.decision === 'accepted') return; // the new state has armed its own timer
      this.#options.log.debug('deadline.ignored', { actorId: address.id, kind: deadline.kind, outcome: result.ok ? 'ignored' : result.error.code });
      await this.#pause(DRIVER_LIMITS.loadRetryMs);
    }
    if (this.#work.get(commitSubject(address)) === work) this.#arm(address, work);
  }

  #dueAt(deadline: Deadline, state: S): number {
    return this.#options.dueAt?.(deadline, state) ?? deadline.at;
  }

  #later(waitMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#retries.delete(timer);
      run();
    }, waitMs);
    this.#retries.add(timer);
  }

  #pause(waitMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, waitMs);
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done, { once: true });
    });
  }
}
