/** Every state that an actor can get into, by breadth-first search over sample commands, up to what `shapeOf` tells apart. */
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { ActorDefinition, Effect } from '../definition.ts';

/** A state with the events that led to it and the time of the last one. */
export type Reached<S, E> = { readonly state: S | null; readonly events: readonly E[]; readonly at: number };

export type Space<S extends object, C extends { readonly type: string }, E extends { readonly type: string }> = {
  readonly definition: ActorDefinition<S, C, E, Effect>;
  readonly address: ActorAddress;
  readonly commands: readonly C[];
  readonly delaysMs: readonly number[];
  readonly startAt: number;
  /** Equal for states that no decision tells apart. Must have few values. */
  readonly shapeOf: (state: S) => string;
};

export const reachableStates = <S extends object, C extends { readonly type: string }, E extends { readonly type: string }>(
  space: Space<S, C, E>,
): Reached<S, E>[] => {
  const { definition, address, commands, delaysMs, startAt, shapeOf } = space;
  const reached: Reached<S, E>[] = [{ state: null, events: [], at: startAt }];
  const shapes = new Set<string>();
  for (const from of reached) // grows while it is walked
    for (const command of commands)
      for (const delayMs of delaysMs) {
        const at = from.at + delayMs;
        const decision = definition.decide(from.state, command, { address, at: at as TimestampMs });
        if (decision.kind !== 'accept') continue;
        let state = from.state;
        for (const event of decision.events) state = definition.evolve(state, event);
        if (!state || shapes.has(shapeOf(state))) continue;
        shapes.add(shapeOf(state));
        reached.push({ state, events: [...from.events, ...decision.events], at });
      }
  return reached;
};
