/**
 * The actor host: a step function without I/O.
 *
 * Mailbox per actor → de-duplicate → decide → append → only after the append is durable: adopt the state, release the
 * reply, announce effects and deadlines. Nothing leaves an actor before its commit is durable (INV-DUR). Adapters turn
 * promises into inputs in production, the simulator turns heap entries into inputs; this file is the same in both.
 *
 * Does not decide: when to retry (the driver waits), which effects already run (the driver compares keys), what time it is.
 */
import type { Commit } from '#bus/envelope.ts';
import { toWireError, type WireError, wireError } from '#bus/errors.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { AppendOutcome, AppendRequest, StoredCommit } from '../ports/event-log.ts';
import { appendRequestOf, type CommandMeta, isSameCommand } from './commit.ts';
import type { ActorDefinition, Deadline, Effect } from './definition.ts';
import { KERNEL_LIMITS } from './limits.ts';

export type { CommandMeta } from './commit.ts';

export type CommandResult =
  | { readonly ok: true; readonly decision: 'accepted'; readonly version: number; readonly commit: Commit }
  | { readonly ok: true; readonly decision: 'ignored'; readonly reason: string; readonly version: number }
  | { readonly ok: false; readonly error: WireError };

export type HostInput<C> =
  /**
   * `birth`: the command is the first of an actor that most likely does not exist, so it is decided without loading. When it
   * does exist after all, the append conflicts, and the command is decided again on what was loaded.
   */
  | {
      readonly type: 'command';
      readonly address: ActorAddress;
      readonly command: C;
      readonly meta: CommandMeta;
      readonly token: number;
      readonly birth?: boolean;
    }
  | { readonly type: 'loaded'; readonly address: ActorAddress; readonly stored: StoredCommit | null }
  | { readonly type: 'loadFailed'; readonly address: ActorAddress; readonly error: WireError }
  | { readonly type: 'appended'; readonly address: ActorAddress; readonly outcome: AppendOutcome }
  | { readonly type: 'recalled'; readonly address: ActorAddress; readonly commits: readonly StoredCommit[] }
  | { readonly type: 'recallFailed'; readonly address: ActorAddress; readonly error: WireError };

export type HostOutput<S, F> =
  | { readonly type: 'load'; readonly address: ActorAddress }
  | { readonly type: 'append'; readonly request: AppendRequest; readonly repetition: number }
  /** Read commits with version > `afterVersion`, at most `limit`: a command came back whose answer may be among them. */
  | { readonly type: 'recall'; readonly address: ActorAddress; readonly afterVersion: number; readonly limit: number }
  | { readonly type: 'reply'; readonly token: number; readonly result: CommandResult }
  /** The state is durable: start the effects that do not run yet, stop the timers that are not listed any more. */
  | {
      readonly type: 'adopted';
      readonly address: ActorAddress;
      readonly state: S;
      readonly stored: StoredCommit;
      readonly effects: readonly F[];
      readonly deadlines: readonly Deadline[];
      readonly over: boolean;
    };

type Waiting<C> = { readonly command: C; readonly meta: CommandMeta; readonly token: number; conflicts: number };
type Appending<S> = { readonly request: AppendRequest; readonly state: S; repetition: number; conflict: WireError | null };
type Actor<S, C> = {
  readonly address: ActorAddress;
  phase: 'loading' | 'idle' | 'appending' | 'recalling';
  state: S | null;
  stored: StoredCommit | null;
  /** Replaced, not changed: the empty one is shared by all that have nothing to do, which are nearly all. */
  mailbox: readonly Waiting<C>[];
  appending: Appending<S> | null;
};

export class ActorHost<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly #definition: ActorDefinition<S, C, E, F>;
  /** Project → id → actor: all of one kind, in which these two name one. Both strings are at hand, so none is made to look one up. */
  readonly #actors = new Map<string, Map<string, Actor<S, C>>>();
  #size = 0;

  constructor(definition: ActorDefinition<S, C, E, F>) {
    this.#definition = definition;
  }

  step(input: HostInput<C>): HostOutput<S, F>[] {
    const out: HostOutput<S, F>[] = [];
    switch (input.type) {
      case 'command':
        this.#onCommand(input, out);
        break;
      case 'loaded':
        this.#onLoaded(input, out);
        break;
      case 'loadFailed':
        this.#onLoadFailed(input, out);
        break;
      case 'appended':
        this.#onAppended(input, out);
        break;
      case 'recalled':
        this.#onRecalled(input.address, ({ meta }, { commit }) => recalledResult(input.address, meta, commit, input.commits), out);
        break;
      case 'recallFailed':
        this.#onRecalled(input.address, () => ({ ok: false, error: input.error }), out);
        break;
    }
    return out;
  }

  /** Durable state of a loaded actor; undefined when the host does not hold it. */
  peek(address: ActorAddress): { readonly state: S; readonly stored: StoredCommit } | undefined {
    const actor = this.#find(address);
    return actor?.state && actor.stored ? { state: actor.state, stored: actor.stored } : undefined;
  }

  /** Drops an idle actor from memory; the next command loads it again. False while it is busy. */
  evict(address: ActorAddress): boolean {
    const actor = this.#find(address);
    if (!actor) return true;
    if (actor.phase !== 'idle' || actor.mailbox.length > 0) return false;
    this.#drop(address);
    return true;
  }

  get size(): number {
    return this.#size;
  }

  #onCommand({ address, command, meta, token, birth = false }: Extract<HostInput<C>, { type: 'command' }>, out: HostOutput<S, F>[]): void {
    let actor = this.#find(address);
    if (!actor) {
      actor = this.#hold(address, birth ? 'idle' : 'loading');
      if (!birth) out.push({ type: 'load', address });
    }
    if (actor.mailbox.length >= KERNEL_LIMITS.mailboxLength) {
      const message = `${address.kind} ${address.id} already has ${KERNEL_LIMITS.mailboxLength} commands waiting; try again`;
      out.push({ type: 'reply', token, result: { ok: false, error: wireError('OVERLOADED', message) } });
      return;
    }
    actor.mailbox = [...actor.mailbox, { command, meta, token, conflicts: 0 }];
    if (actor.phase === 'idle') this.#drain(actor, out);
  }

  #onLoaded({ address, stored }: Extract<HostInput<C>, { type: 'loaded' }>, out: HostOutput<S, F>[]): void {
    const actor = this.#find(address) ?? this.#hold(address, 'loading');
    if (actor.phase === 'appending' || actor.phase === 'recalling') return; // a late answer to a load that was overtaken
    if (actor.phase === 'idle' && (stored?.sequence ?? 0) <= (actor.stored?.sequence ?? 0)) return; // unasked, and nothing new
    let state: S | null;
    try {
      state = stored && this.#definition.parseState(stored.commit.state, stored.commit.schema);
    } catch (thrown) {
      this.#fail(actor, toWireError(thrown), out); // one unreadable commit must not stop the other actors
      return;
    }
    const tried = actor.appending;
    actor.appending = null;
    actor.phase = 'idle';
    actor.stored = stored;
    actor.state = state;
    if (tried) this.#settleConflict(actor, tried, out);
    if (state && stored) this.#announce(actor, state, stored, out);
    this.#drain(actor, out);
  }

  /** After a conflict the log was read again: the stored commit is ours after all, or the head decides once more, or gives up. */
  #settleConflict(actor: Actor<S, C>, tried: Appending<S>, out: HostOutput<S, F>[]): void {
    const { stored, address } = actor;
    const head = actor.mailbox[0];
    if (!head) return;
    let result: CommandResult;
    if (stored && isSameCommand(stored.commit, tried.request.commit))
      result = { ok: true, decision: 'accepted', version: stored.commit.version, commit: stored.commit };
    else if (head.conflicts < KERNEL_LIMITS.conflictRetries) return;
    // Nothing to read, and yet something in the way: a tombstone.
    else if (!stored && tried.request.expectedSequence === 0) result = { ok: false, error: this.#definition.forgotten(address) };
    else
      result = {
        ok: false,
        error: tried.conflict ?? wireError('INTERNAL', `${address.kind} ${address.id} was written by others ${head.conflicts} times in a row`),
      };
    takeHead(actor);
    out.push({ type: 'reply', token: head.token, result });
  }

  #find({ project, id }: ActorAddress): Actor<S, C> | undefined {
    return this.#actors.get(project)?.get(id);
  }

  #hold(address: ActorAddress, phase: Actor<S, C>['phase']): Actor<S, C> {
    const actor: Actor<S, C> = { address, phase, state: null, stored: null, mailbox: NOBODY, appending: null };
    const ofProject = this.#actors.get(address.project) ?? new Map<string, Actor<S, C>>();
    this.#actors.set(address.project, ofProject.set(address.id, actor));
    this.#size += 1;
    return actor;
  }

  #drop({ project, id }: ActorAddress): void {
    const ofProject = this.#actors.get(project);
    if (!ofProject?.delete(id)) return;
    this.#size -= 1;
    if (ofProject.size === 0) this.#actors.delete(project);
  }

  #onLoadFailed({ address, error }: Extract<HostInput<C>, { type: 'loadFailed' }>, out: HostOutput<S, F>[]): void {
    const actor = this.#find(address);
    if (actor?.phase === 'loading') this.#fail(actor, error, out);
  }

  /** The actor cannot be had: everybody who waits is told, and the next command tries to load it again. */
  #fail(actor: Actor<S, C>, error: WireError, out: HostOutput<S, F>[]): void {
    for (const { token } of actor.mailbox) out.push({ type: 'reply', token, result: { ok: false, error } });
    this.#drop(actor.address);
  }

  #onAppended({ address, outcome }: Extract<HostInput<C>, { type: 'appended' }>, out: HostOutput<S, F>[]): void {
    const actor = this.#find(address);
    const pending = actor?.appending;
    const head = actor?.mailbox[0];
    if (!actor || !pending || !head || actor.phase !== 'appending') return; // an answer to a repetition that was settled
    if (outcome.outcome === 'applied') {
      this.#applied(actor, pending, outcome.sequence, out);
    } else if (outcome.outcome === 'unknown') {
      pending.repetition += 1;
      out.push({ type: 'append', request: pending.request, repetition: pending.repetition });
    } else if (outcome.reason === 'rejected') {
      actor.appending = null;
      actor.phase = 'idle';
      takeHead(actor);
      out.push({ type: 'reply', token: head.token, result: { ok: false, error: outcome.error } });
      this.#drain(actor, out);
    } else {
      head.conflicts += 1;
      pending.conflict = outcome.error;
      actor.phase = 'loading'; // `appending` stays: what is loaded may prove to be ours
      out.push({ type: 'load', address });
    }
  }

  /** The log was read back for the head of the mailbox, which came again: it is answered, and the others go on. */
  #onRecalled(address: ActorAddress, resultOf: (head: Waiting<C>, stored: StoredCommit) => CommandResult, out: HostOutput<S, F>[]): void {
    const actor = this.#find(address);
    const head = actor?.mailbox[0];
    if (actor?.phase !== 'recalling' || !actor.stored || !head) return;
    actor.phase = 'idle';
    takeHead(actor);
    out.push({ type: 'reply', token: head.token, result: resultOf(head, actor.stored) });
    this.#drain(actor, out);
  }

  #applied(actor: Actor<S, C>, pending: Appending<S>, sequence: number, out: HostOutput<S, F>[]): void {
    const head = actor.mailbox[0];
    takeHead(actor);
    const stored: StoredCommit = { address: actor.address, sequence, commit: pending.request.commit };
    actor.appending = null;
    actor.phase = 'idle';
    actor.state = pending.state;
    actor.stored = stored;
    if (head) out.push({ type: 'reply', token: head.token, result: { ok: true, decision: 'accepted', version: stored.commit.version, commit: stored.commit } });
    this.#announce(actor, pending.state, stored, out);
    this.#drain(actor, out);
  }

  #announce(actor: Actor<S, C>, state: S, stored: StoredCommit, out: HostOutput<S, F>[]): void {
    const d = this.#definition;
    out.push({
      type: 'adopted',
      address: actor.address,
      state,
      stored,
      effects: d.pendingEffects(state),
      deadlines: d.deadlines(state),
      over: d.isOver(state),
    });
  }

  /** Decides commands until one needs an append or the mailbox is empty. An actor that never came to be leaves memory at once. */
  #drain(actor: Actor<S, C>, out: HostOutput<S, F>[]): void {
    while (actor.phase === 'idle') {
      const head = actor.mailbox[0];
      if (!head) {
        if (!actor.stored) this.#drop(actor.address);
        return;
      }
      const settled = this.#decide(actor, head, out);
      if (settled) {
        takeHead(actor);
        out.push({ type: 'reply', token: head.token, result: settled });
      }
    }
  }

  /** Either the command's answer, or undefined after an append or a look back was asked for. */
  #decide(actor: Actor<S, C>, { command, meta }: Waiting<C>, out: HostOutput<S, F>[]): CommandResult | undefined {
    const previous = actor.stored?.commit;
    const version = previous?.version ?? 0;
    if (previous && meta.sequence !== undefined && meta.sequence <= previous.lastCommandSequence) {
      if (previous.commandId === meta.commandId) return { ok: true, decision: 'accepted', version, commit: previous };
      // Obeyed by a process that died before it could answer, or passed over: what lies before the newest commit tells.
      actor.phase = 'recalling';
      const limit = KERNEL_LIMITS.recalledCommits;
      out.push({ type: 'recall', address: actor.address, afterVersion: Math.max(0, version - 1 - limit), limit });
      return undefined;
    }
    const decision = this.#definition.decide(actor.state, command, { address: actor.address, at: meta.at });
    if (decision.kind === 'ignore') return { ok: true, decision: 'ignored', reason: decision.reason, version };
    if (decision.kind === 'reject') return { ok: false, error: decision.error };

    let state = actor.state;
    for (const event of decision.events) state = this.#definition.evolve(state, event);
    if (!state) throw new Error(`${this.#definition.kind}: accepted without a state`);
    const request = appendRequestOf(actor.address, actor.stored, meta, { schema: this.#definition.schema, events: decision.events, state });
    actor.phase = 'appending';
    actor.appending = { request, state, repetition: 0, conflict: null };
    out.push({ type: 'append', request, repetition: 0 });
    return undefined;
  }
}

const NOBODY: readonly never[] = [];
const takeHead = <C>(actor: { mailbox: readonly Waiting<C>[] }): void => {
  actor.mailbox = actor.mailbox.length > 1 ? actor.mailbox.slice(1) : NOBODY;
};

/** What a command gets that comes again after later ones were obeyed: its own commit, or that it is too late. */
const recalledResult = (address: ActorAddress, meta: CommandMeta, newest: Commit, commits: readonly StoredCommit[]): CommandResult => {
  const own = commits.find(({ commit }) => commit.commandId === meta.commandId)?.commit;
  if (own) return { ok: true, decision: 'accepted', version: own.version, commit: own };
  const { lastCommandSequence } = newest;
  const message = `command ${meta.commandId} is older than what ${address.kind} ${address.id} has already obeyed; look at its state, then ask again with a new key`;
  return { ok: false, error: wireError('SUPERSEDED', message, { details: { commandId: meta.commandId, sequence: meta.sequence, lastCommandSequence } }) };
};
