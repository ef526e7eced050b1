/**
 * What an actor kind is: pure functions over data. The host (`host.ts`) supplies identity, time and durability.
 *
 * INV-REPLAY: folding `evolve` over every event of the log gives the state that the last commit carries.
 */
import type { WireError } from '#bus/errors.ts';
import type { ActorAddress, ActorKind } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';

/** `ignore` is a success that changes nothing (the goal is already reached); `reject` is an answer, never an exception. */
export type Decision<E> =
  | { readonly kind: 'accept'; readonly events: readonly [E, ...E[]] }
  | { readonly kind: 'ignore'; readonly reason: string }
  | { readonly kind: 'reject'; readonly error: WireError };

export const accept = <E>(...events: readonly [E, ...E[]]): Decision<E> => ({ kind: 'accept', events });
export const ignore = <E>(reason: string): Decision<E> => ({ kind: 'ignore', reason });
export const reject = <E>(error: WireError): Decision<E> => ({ kind: 'reject', error });

/** What a decision may know beside state and command. */
export type DecisionContext = { readonly address: ActorAddress; readonly at: TimestampMs };

/**
 * Work that a state calls for. `key` names the work, stays equal while the same work is still due, and changes when new
 * work of the same type is due. Running it twice must be harmless; its result comes back as a command.
 */
export type Effect = { readonly key: string; readonly type: string };

/** A time limit held by the state. The command it turns into carries `version`, so that a stale timer is ignored. */
export type Deadline = { readonly kind: string; readonly at: TimestampMs; readonly version: number };

export interface ActorDefinition<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly kind: ActorKind;
  /** Version of this kind's event and state schemas, written into every commit. */
  readonly schema: number;
  /** Total: every state × every command has an answer. Null is the state before the first event. */
  decide(state: S | null, command: C, context: DecisionContext): Decision<E>;
  /** Throws only on an event that `decide` can never have produced from `state`. */
  evolve(state: S | null, event: E): S;
  /** Everything that still has to be done, from state alone: the same after a crash as before it. */
  pendingEffects(state: S): readonly F[];
  deadlines(state: S): readonly Deadline[];
  /** Nothing is left to do: no effect, no deadline. It may leave memory, and its log once the retention is over. */
  isOver(state: S): boolean;
  /**
   * Checks and types a state read from the log, written under `schema` (the newest when left out); throws
   * MALFORMED_MESSAGE or UNSUPPORTED_VERSION.
   */
  parseState(raw: unknown, schema?: number): S;
  /** The answer to a command that would begin the actor again where its tombstone still lies. */
  forgotten(address: ActorAddress): WireError;
}

/** Folds a whole history; the property tests and the recorded histories use it, production never does. */
export const fold = <S extends object, E extends { readonly type: string }>(
  definition: Pick<ActorDefinition<S, never, E, never>, 'evolve'>,
  events: Iterable<E>,
  from: S | null = null,
): S | null => {
  let state = from;
  for (const event of events) state = definition.evolve(state, event);
  return state;
};
