/** Given events, when a command, then what: unit tests of deciders in the words of the actor. */
import { expect } from 'vitest';
import type { ErrorCode } from '#bus/errors.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { type ActorDefinition, type Decision, type Effect, fold } from '../definition.ts';

export const given = <S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect>(
  definition: ActorDefinition<S, C, E, F>,
  address: ActorAddress,
  history: readonly E[],
) => {
  const state = fold<S, E>(definition, history);
  return {
    state,
    when: (command: C, at: number) => {
      const decision: Decision<E> = definition.decide(state, command, { address, at: at as TimestampMs });
      return {
        thenEvents: (...events: readonly Partial<E>[]): void => {
          expect(decision).toMatchObject({ kind: 'accept', events });
          if (decision.kind === 'accept') fold<S, E>(definition, decision.events, state);
        },
        thenIgnored: (reason: RegExp): void => expect(decision).toEqual({ kind: 'ignore', reason: expect.stringMatching(reason) }),
        thenRejected: (code: ErrorCode, message = /./): void =>
          expect(decision).toMatchObject({ kind: 'reject', error: { code, message: expect.stringMatching(message) } }),
      };
    },
  };
};

/** The events of a run of commands that must all be accepted: a history as it really comes to be. */
export const historyOf = <S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect>(
  definition: ActorDefinition<S, C, E, F>,
  address: ActorAddress,
  steps: readonly { readonly command: C; readonly at: number }[],
): E[] => {
  const events: E[] = [];
  let state: S | null = null;
  for (const { command, at } of steps) {
    const decision = definition.decide(state, command, { address, at: at as TimestampMs });
    if (decision.kind !== 'accept') throw new Error(`${command.type}: ${JSON.stringify(decision)}`);
    for (const event of decision.events) state = definition.evolve(state, event);
    events.push(...decision.events);
  }
  return events;
};
