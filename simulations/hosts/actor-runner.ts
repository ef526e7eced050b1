/**
 * Runs the production `ActorHost` against simulated ports, as `node-runtime/roles/driver` runs it against the real ones: appends
 * repeated until their outcome is known, effects by key, one timer per actor at its nearest deadline. What to start, how long to
 * wait and how results are named is decided by `actors/kernel/work.ts` in both.
 */
import type { WireError } from '#bus/errors.ts';
import { wireError } from '#bus/errors.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { ActorDefinition, Deadline, Effect } from '#actors/kernel/definition.ts';
import type { ActorHost, CommandMeta, CommandResult, HostInput, HostOutput } from '#actors/kernel/host.ts';
import { backoffMs, changesOfWork, deadlineMeta, RETRY_LIMITS, reportMeta } from '#actors/kernel/work.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { Task } from '../kernel/heap.ts';
import type { Answer } from '../ports/event-log.ts';
import type { Process } from './process.ts';

export type EffectResult<C> = { readonly ok: true; readonly report: C | null } | { readonly ok: false; readonly error: WireError };
export type EffectContext<S> = { readonly address: ActorAddress; readonly state: S; readonly stored: StoredCommit };

export type RunnerOptions<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> = {
  readonly process: Process;
  readonly definition: ActorDefinition<S, C, E, F>;
  readonly host: ActorHost<S, C, E, F>;
  /** `ok: false` means "try again later"; a null report that nothing is to be said. */
  readonly runEffect: (effect: F, context: EffectContext<S>, done: (result: EffectResult<C>) => void) => void;
  /** Absent where deadlines are served by somebody else. */
  readonly deadlineCommand?: (deadline: Deadline, state: S) => C;
  readonly dueAt?: (deadline: Deadline, state: S) => number;
  readonly onAdopted?: (state: S, stored: StoredCommit, over: boolean) => void;
  /** Told of every answer that leaves an actor. */
  readonly onReply?: (address: ActorAddress, result: CommandResult) => void;
};

type Running = { readonly key: string; stopped: boolean };
type Work = { effects: Running[]; timer: Task | null; deadlines: readonly Deadline[] };
type Waiting = { readonly address: ActorAddress; readonly done: (result: CommandResult) => void };

export class ActorRunner<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly #o: RunnerOptions<S, C, E, F>;
  readonly #waiting = new Map<number, Waiting>();
  /** By actor id: ids are unique within one runner's kind. */
  readonly #work = new Map<string, Work>();
  #nextToken = 1;

  constructor(options: RunnerOptions<S, C, E, F>) {
    this.#o = options;
  }

  submit(address: ActorAddress, command: C, meta: CommandMeta, done: (result: CommandResult) => void, birth = false): void {
    const token = this.#nextToken++;
    this.#waiting.set(token, { address, done });
    this.#step({ type: 'command', address, command, meta, token, birth });
  }

  adopt(stored: StoredCommit): void {
    this.#step({ type: 'loaded', address: stored.address, stored });
  }

  peek(address: ActorAddress): { readonly state: S; readonly stored: StoredCommit } | undefined {
    return this.#o.host.peek(address);
  }

  evict(address: ActorAddress): boolean {
    const work = this.#work.get(address.id);
    if ((work && work.effects.length > 0) || !this.#o.host.evict(address)) return false;
    this.#o.process.clock.cancel(work?.timer);
    this.#work.delete(address.id);
    return true;
  }

  /** Timers of a process that ended would only fill the agenda. */
  close(): void {
    for (const { timer } of this.#work.values()) this.#o.process.clock.cancel(timer);
    this.#work.clear();
    this.#waiting.clear();
  }

  #step(input: HostInput<C>): void {
    if (!this.#o.process.alive) return;
    for (const output of this.#o.host.step(input)) this.#perform(output);
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
        const waiting = this.#waiting.get(output.token);
        this.#waiting.delete(output.token);
        if (!waiting) break;
        this.#o.onReply?.(waiting.address, output.result);
        waiting.done(output.result);
        break;
      }
      case 'adopted':
        this.#adopted(output);
        break;
    }
  }

  #load(address: ActorAddress): void {
    this.#read<StoredCommit | null>(
      (done) => this.#o.process.log.last(address, done),
      (stored) => this.#step({ type: 'loaded', address, stored }),
      (error) => this.#step({ type: 'loadFailed', address, error }),
    );
  }

  #recall({ address, afterVersion, limit }: Extract<HostOutput<S, F>, { type: 'recall' }>): void {
    this.#read<readonly StoredCommit[]>(
      (done) => this.#o.process.log.history(address, afterVersion, limit, done),
      (commits) => this.#step({ type: 'recalled', address, commits }),
      (error) => this.#step({ type: 'recallFailed', address, error }),
    );
  }

  #read<T>(read: (done: (answer: Answer<T>) => void) => void, done: (value: T) => void, failed: (error: WireError) => void, attempt = 1): void {
    read((answer) => {
      if (answer.ok) done(answer.value);
      else if (attempt < RETRY_LIMITS.loadAttempts)
        this.#o.process.after(RETRY_LIMITS.loadRetryMs, 'read again', () => this.#read(read, done, failed, attempt + 1));
      else failed(answer.error);
    });
  }

  #append({ request, repetition }: Extract<HostOutput<S, F>, { type: 'append' }>): void {
    const send = () => this.#o.process.log.append(request, (outcome) => this.#step({ type: 'appended', address: request.address, outcome }));
    if (repetition === 0) send();
    else this.#o.process.after(backoffMs(repetition, RETRY_LIMITS.appendRetryMinMs, RETRY_LIMITS.appendRetryMaxMs), 'append again', send);
  }

  #adopted({ address, state, stored, effects, deadlines, over }: Extract<HostOutput<S, F>, { type: 'adopted' }>): void {
    this.#o.onAdopted?.(state, stored, over);
    let work = this.#work.get(address.id);
    if (!work && (over || (effects.length === 0 && deadlines.length === 0))) return;
    if (!work) {
      work = { effects: [], timer: null, deadlines };
      this.#work.set(address.id, work);
    }
    const { stop, start } = changesOfWork(
      work.effects.map(({ key }) => key),
      effects,
    );
    if (stop.length > 0) {
      for (const running of work.effects) if (stop.includes(running.key)) running.stopped = true;
      work.effects = work.effects.filter(({ stopped }) => !stopped);
    }
    for (const effect of start) {
      const running = { key: effect.key, stopped: false };
      work.effects.push(running);
      this.#run(effect, address, work, running, 1);
    }
    work.deadlines = deadlines;
    this.#arm(address, work);
    if (over && work.effects.length === 0 && deadlines.length === 0) this.#work.delete(address.id);
  }

  /** Until its report has been taken, or nobody wants it any more. */
  #run(effect: F, address: ActorAddress, work: Work, running: Running, repetition: number): void {
    const held = this.#o.host.peek(address);
    if (running.stopped || !held) return;
    const finish = () => {
      running.stopped = true;
      work.effects = work.effects.filter((other) => other !== running);
    };
    const again = () => {
      const pauseMs = backoffMs(repetition, RETRY_LIMITS.effectRetryMinMs, RETRY_LIMITS.effectRetryMaxMs);
      this.#o.process.after(pauseMs, 'effect again', () => this.#run(effect, address, work, running, repetition + 1));
    };
    this.#o.runEffect(effect, { address, state: held.state, stored: held.stored }, (result) => {
      if (running.stopped || !this.#o.process.alive) return;
      if (!result.ok) return again();
      if (result.report === null) return finish();
      this.submit(address, result.report, reportMeta(effect, held.stored, this.#o.process.clock.now()), (answer) => {
        if (answer.ok || answer.error.retry === 'never') finish();
        else if (!running.stopped) again();
      });
    });
  }

  #arm(address: ActorAddress, work: Work): void {
    const { clock } = this.#o.process;
    clock.cancel(work.timer);
    work.timer = null;
    const held = this.#o.host.peek(address);
    if (!held || work.deadlines.length === 0 || !this.#o.deadlineCommand) return;
    let nearest = Number.POSITIVE_INFINITY;
    for (const deadline of work.deadlines) nearest = Math.min(nearest, this.#dueAt(deadline, held.state));
    work.timer = this.#o.process.after(Math.max(0, nearest - clock.now()), 'deadline', () => this.#onTimer(address, work, [...work.deadlines]));
  }

  #onTimer(address: ActorAddress, work: Work, left: readonly Deadline[]): void {
    const held = this.#o.host.peek(address);
    if (!held) return;
    const now = this.#o.process.clock.now();
    const at = left.findIndex((deadline) => this.#dueAt(deadline, held.state) <= now);
    const deadline = left[at];
    if (!deadline || !this.#o.deadlineCommand) {
      if (this.#work.get(address.id) === work) this.#arm(address, work);
      return;
    }
    const command = this.#o.deadlineCommand(deadline, held.state);
    this.submit(address, command, deadlineMeta(address, deadline, held.stored, now), (result) => {
      if (result.ok && result.decision === 'accepted') return; // the new state has armed its own timer
      this.#o.process.after(RETRY_LIMITS.loadRetryMs, 'deadline ignored', () => this.#onTimer(address, work, left.slice(at + 1)));
    });
  }

  #dueAt(deadline: Deadline, state: S): number {
    return this.#o.dueAt?.(deadline, state) ?? deadline.at;
  }
}

export const busAway = (what: string): WireError => wireError('BUS_UNAVAILABLE', what);
