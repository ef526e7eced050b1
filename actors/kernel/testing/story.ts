/**
 * Life stories: named runs of commands, as data. Each is run twice (the second time with the actor dropped before every
 * step), and is recorded once per schema version as a history that must fold to its recorded state for ever.
 */
import type { RecordKind } from '#bus/records.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { ActorDefinition, Effect } from '../definition.ts';
import { Scenario, type Step } from './scenario.ts';

export type Story<C> = { readonly name: string; readonly steps: readonly Step<C>[] };

// biome-ignore lint/suspicious/noExplicitAny: a shelf of stories holds actors of different kinds
export type AnyScenario = Scenario<any, any, any, any>;

/** The stories of one kind, with how to run them. */
export type Shelf = {
  readonly kind: RecordKind;
  readonly stories: readonly { readonly name: string; readonly run: (evict: boolean) => AnyScenario }[];
};

export const shelf = <S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect>(
  kind: Shelf['kind'],
  definition: ActorDefinition<S, C, E, F>,
  address: ActorAddress,
  stories: readonly Story<C>[],
): Shelf => ({
  kind,
  stories: stories.map(({ name, steps }) => ({ name, run: (evict) => new Scenario(definition, address).run(steps, { evictBeforeEachStep: evict }) })),
});
