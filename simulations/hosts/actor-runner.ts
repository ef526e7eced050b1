/**
 * Runs the production `ActorHost` against simulated ports, as `node-runtime/roles/driver` runs it against the real ones: appends
 * repeated until their outcome is known, effects by key, one timer per actor at its nearest deadline. What to start, how long to
 * wait and how results are named is decided by `actors/kernel/work.ts` in both.
 */
import type { WireError } from '#bus/errors.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { ActorDefinition, Deadline, Effect } from '#actors/kernel/definition.ts';
import type { ActorHost, CommandMeta, CommandResult, HostInput, HostOutput } from '#actors/kernel/host.ts';
import { backoffMs, changesOfWork, deadlineMeta, RETRY_LIMITS, reportMeta } from '#actors/kernel/work.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { Task } from '../kernel/heap.ts';
import type { Answer } from '../ports/event-log.ts';
import type { Process } from './process.ts';

export type EffectResult<C> = { readonly ok: true; readonly report: C | null } | { readonly ok: false; readonly error: WireError };

/** One run of an effect. `finish` may be called by whoever does it, at any time, once; later calls change nothing. */
export interface UnderWay<S, C> {
  readonly address: ActorAddress;
  readonly state: S;
  readonly stored: StoredCommit;
  /** Nobody wants it any more. */
  readonly stopped: boolean;
  /** `ok: false` means "try again later"; a null report that nothing is to be said. */
  finish(result: EffectResult<C>): void;
}

export type RunnerOptions<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> = {
  readonly process: Process;
  readonly definition: ActorDefinition<S, C, E, F>;
  readonly host: ActorHost<S, C, E, F>;
  readonly runEffect?: (effect: F, under: UnderWay<S, C>) => void;
  /** Whether effects and deadlines of an actor are this process's: without it all are. */
  readonly doesWork?: (address: ActorAddress) => boolean;
  /** Absent where deadlines are served by somebody else. */
  readonly deadlineCommand?: (deadline: Deadline, state: S) => C;
  readonly dueAt?: (deadline: Deadline, state: S) => number;
  readonly onAdopted?: (state: S, stored: StoredCommit, over: boolean) => void;
  /** Told of every answer that leaves an actor. */
  readonly onReply?: (address: ActorAddress, result: CommandResult) => void;
};

type Waiting = { readonly address: ActorAddress; readonly done: (result: CommandResult) => void };
const NO_EFFECTS: readonly never[] = [];

export class ActorRunner<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly #o: RunnerOptions<S, C, E, F>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #answers: { readonly waiting: Waiting; readonly result: CommandResult }[] = [];
  #isAnswering = false;
  /** By actor id: ids are unique within one runner's kind. */
  readonly #work = new Map<string, Work<S, C>>();
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

  /** Of an actor that has something under way. */
  stateOf(id: string): S | undefined {
    const work = this.#work.get(id);
    return work && this.#o.host.peek(work.address)?.state;
  }

  evict(address: ActorAddress): boolean {
    const work = this.#work.get(address.id);
    if (work?.first || !this.#o.host.evict(address)) return false;
    this.#o.process.clock.cancel(work);
    this.#work.delete(address.id);
    return true;
  }

  /** Lets go of an actor's work, which another process does from now on. */
  release(address: ActorAddress): void {
    this.#dropWork(address);
    this.#o.host.evict(address);
  }

  #dropWork({ id }: ActorAddress): void {
    const work = this.#work.get(id);
    if (!work) return;
    for (let running = work.first; running; running = running.next) running.stopped = true;
    this.#o.process.clock.cancel(work);
    this.#work.delete(id);
  }

  /** Timers of a process that ended would only fill the agenda. */
  close(): void {
    for (const work of this.#work.values()) this.#o.process.clock.cancel(work);
    this.#work.clear();
    this.#waiting.clear();
  }

  #step(input: HostInput<C>): void {
    if (!this.#o.process.alive) return;
    for (const output of this.#o.host.step(input)) this.#perform(output);
    if (!this.#isAnswering) this.#answer();
  }

  /** Whoever waits goes on when all of the step has been done, as after an `await`. */
  #answer(): void {
    this.#isAnswering = true;
    for (let next = this.#answers.shift(); next; next = this.#answers.shift()) next.waiting.done(next.result);
    this.#isAnswering = false;
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
        this.#answers.push({ waiting, result: output.result });
        break;
      }
      case 'adopted':
        this.#adopted(output);
        break;
      default:
        output satisfies never; // what hosts ask for is done here, or the simulation means nothing
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
    if (this.#o.doesWork?.(address) === false) return this.#dropWork(address);
    const due = this.#o.runEffect ? effects : NO_EFFECTS;
    let work = this.#work.get(address.id);
    if (!work) {
      if (over || (due.length === 0 && (deadlines.length === 0 || !this.#o.deadlineCommand))) return;
      work = new Work(address, this.#onTimer);
      this.#work.set(address.id, work);
    }
    if (work.first || due.length > 0) this.#changeEffects(work, due, { state, stored });
    this.#arm(address, deadlines, state);
    if (over && deadlines.length === 0 && !this.#work.get(address.id)?.first) this.#work.delete(address.id);
  }

  #changeEffects(work: Work<S, C>, due: readonly F[], { state, stored }: { readonly state: S; readonly stored: StoredCommit }): void {
    const { stop, start } = changesOfWork(keysOf(work), due);
    for (const key of stop) work.drop((running) => running.key === key);
    const started = start.map((effect) => ({ effect, running: new Running<S, C>(effect.key, state, stored, this.#onFinished) }));
    for (const { running } of started) work.add(running);
    for (const { effect, running } of started) if (!running.stopped) this.#o.runEffect?.(effect, running);
  }

  /** Until its report has been taken, or nobody wants it any more. */
  readonly #onFinished = (running: Running<S, C>, result: EffectResult<C>): void => {
    if (!this.#o.process.alive) return;
    if (!result.ok) return this.#again(running);
    if (result.report === null) return this.#end(running);
    this.submit(running.address, result.report, reportMeta(running, running.stored, this.#o.process.clock.now()), (answer) => {
      if (answer.ok || answer.error.retry === 'never') this.#end(running);
      else if (!running.stopped) this.#again(running);
    });
  };

  #again(running: Running<S, C>): void {
    const pauseMs = backoffMs(running.repetition, RETRY_LIMITS.effectRetryMinMs, RETRY_LIMITS.effectRetryMaxMs);
    this.#o.process.after(pauseMs, 'effect again', () => {
      const held = this.#o.host.peek(running.address);
      if (running.stopped || !held) return;
      running.begin(held.state, held.stored);
      const effect = this.#o.definition.pendingEffects(held.state).find(({ key }) => key === running.key);
      if (effect) this.#o.runEffect?.(effect, running);
    });
  }

  #end(running: Running<S, C>): void {
    running.stopped = true;
    this.#work.get(running.address.id)?.drop((other) => other === running);
  }

  /** One timer per actor, at its nearest deadline. What lies in the agenda already cannot be moved: another takes its place. */
  #arm(address: ActorAddress, deadlines: readonly Deadline[], state: S): void {
    const { clock } = this.#o.process;
    const before = this.#work.get(address.id);
    if (!before) return;
    clock.cancel(before);
    if (deadlines.length === 0 || !this.#o.deadlineCommand) return;
    let nearest = Number.POSITIVE_INFINITY;
    for (const deadline of deadlines) nearest = Math.min(nearest, this.#dueAt(deadline, state));
    this.#work.set(address.id, clock.schedule(Math.max(0, nearest - clock.now()), before.armed()));
  }

  readonly #onTimer = ({ address }: Work<S, C>): void => {
    const held = this.#o.process.alive ? this.#o.host.peek(address) : undefined;
    if (held) this.#passed(address, this.#o.definition.deadlines(held.state));
  };

  #passed(address: ActorAddress, left: readonly Deadline[]): void {
    const held = this.#o.host.peek(address);
    if (!held) return;
    const now = this.#o.process.clock.now();
    const at = left.findIndex((deadline) => this.#dueAt(deadline, held.state) <= now);
    const deadline = left[at];
    if (!deadline || !this.#o.deadlineCommand) return this.#arm(address, this.#o.definition.deadlines(held.state), held.state);
    const command = this.#o.deadlineCommand(deadline, held.state);
    this.submit(address, command, deadlineMeta(address, deadline, held.stored, now), (result) => {
      if (result.ok && result.decision === 'accepted') return; // the new state has armed its own timer
      this.#o.process.after(RETRY_LIMITS.loadRetryMs, 'deadline ignored', () => this.#passed(address, left.slice(at + 1)));
    });
  }

  #dueAt(deadline: Deadline, state: S): number {
    return this.#o.dueAt?.(deadline, state) ?? deadline.at;
  }
}

/**
 * One object for each effect under way: hundreds of thousands hold the channel to a sandbox for as long as it lives. So it knows the
 * effect by its key, which the state tells again.
 */
class Running<S, C> implements UnderWay<S, C> {
  readonly key: string;
  state: S;
  stored: StoredCommit;
  repetition = 1;
  stopped = false;
  next: Running<S, C> | null = null;
  /** Of this repetition: a doubled answer is none. */
  #isFinished = false;
  readonly #onFinished: (running: Running<S, C>, result: EffectResult<C>) => void;

  constructor(key: string, state: S, stored: StoredCommit, onFinished: (running: Running<S, C>, result: EffectResult<C>) => void) {
    this.key = key;
    this.state = state;
    this.stored = stored;
    this.#onFinished = onFinished;
  }

  get address(): ActorAddress {
    return this.stored.address;
  }

  begin(state: S, stored: StoredCommit): void {
    this.state = state;
    this.stored = stored;
    this.repetition += 1;
    this.#isFinished = false;
  }

  finish(result: EffectResult<C>): void {
    if (this.stopped || this.#isFinished) return;
    this.#isFinished = true;
    this.#onFinished(this, result);
  }
}

/** What an actor has under way: its effects, and itself in the agenda for its nearest deadline. Deadlines are a function of its state, and are not kept. */
class Work<S, C> implements Task {
  readonly address: ActorAddress;
  first: Running<S, C> | null = null;
  run: Task['run'] = null;
  readonly tell: (work: Work<S, C>) => void;

  constructor(address: ActorAddress, tell: (work: Work<S, C>) => void) {
    this.address = address;
    this.tell = tell;
  }

  get label(): string {
    return 'deadline';
  }

  /** The same work, to be put into the agenda. */
  armed(): Work<S, C> {
    const work = new Work(this.address, this.tell);
    work.first = this.first;
    work.run = tellOwner;
    return work;
  }

  /** In the order in which they were started. */
  add(running: Running<S, C>): void {
    let last = this.first;
    while (last?.next) last = last.next;
    if (last) last.next = running;
    else this.first = running;
  }

  drop(matches: (running: Running<S, C>) => boolean): void {
    let before: Running<S, C> | null = null;
    for (let running = this.first; running; running = running.next) {
      if (!matches(running)) {
        before = running;
        continue;
      }
      running.stopped = true;
      if (before) before.next = running.next;
      else this.first = running.next;
    }
  }
}
function tellOwner(this: Task): void {
  const work = this as Work<unknown, unknown>;
  work.tell(work);
}

function* keysOf<S, C>({ first }: Work<S, C>): Generator<string> {
  for (let running = first; running; running = running.next) yield running.key;
}
