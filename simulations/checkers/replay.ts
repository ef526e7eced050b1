/** INV-REPLAY: folding the events gives the state that the commit carries; at the end once more from the bytes of the log. */
import type { Commit } from '#bus/envelope.ts';
import { readEvent } from '#bus/records.ts';
import type { ActorDefinition } from '#actors/kernel/definition.ts';
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

// biome-ignore lint/suspicious/noExplicitAny: definitions of different kinds are folded by name
type AnyDefinition = ActorDefinition<any, any, any, any>;

export const replayChecker: MakeChecker = ({ cluster, oneIn, fail }): Checker => {
  const states = new Map<string, object>();
  const definitionOf = (kind: string): AnyDefinition | undefined => {
    const { sandbox, request, edge, project, job } = cluster().parts;
    const known: Partial<Record<string, AnyDefinition>> = { sandbox, request, edge, project, job };
    return known[kind];
  };
  const fold = (definition: AnyDefinition, from: object | null, events: readonly unknown[]): object | null =>
    events.reduce<object | null>((state, event) => definition.evolve(state, event), from);
  return {
    stored: ({ address }, commit) => {
      const definition = definitionOf(address.kind);
      if (!definition || !isFollowed(address.id, oneIn)) return;
      if (!commit) return void states.delete(address.id);
      const folded = fold(definition, states.get(address.id) ?? null, commit.events);
      if (!isSame(folded, commit.state)) fail('INV-REPLAY', `${address.id} version ${commit.version}: the events lead to ${difference(folded, commit.state)}`);
      states.set(address.id, commit.state);
    },
    atEnd: () => {
      const { store, server } = cluster().ground;
      if (cluster().o.keeping !== 'exact') return;
      for (const { address } of store.actors()) {
        const definition = definitionOf(address.kind);
        const history = store.history(server.nowMs, address).flatMap((entry) => (entry.kind === 'commit' ? [entry.stored.commit] : []));
        const last = history.at(-1);
        if (!definition || !last) continue;
        const state = history.reduce<object | null>((from, commit) => fold(definition, from, eventsOf(commit)), null);
        const read = definition.parseState(last.state, last.schema);
        if (!isSame(state, read)) fail('INV-REPLAY', `${address.id}: its whole history leads to ${difference(state, read)}`);
      }
    },
  };
};

const eventsOf = ({ kind, events, schema }: Commit): unknown[] => events.map((event) => (kind === 'environment' ? event : readEvent(kind, event, schema)));

/** Fields mostly come in the same order already; only otherwise are they put in order, which costs several times as much. */
const isSame = (a: object | null, b: object): boolean => JSON.stringify(a) === JSON.stringify(b) || canonical(a) === canonical(b);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, v: unknown) =>
    v !== null && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v,
  );

const difference = (folded: object | null, carried: object): string => {
  const fields = [...new Set([...Object.keys(folded ?? {}), ...Object.keys(carried)])];
  const at = (value: object | null, field: string) => canonical((value as Record<string, unknown> | null)?.[field]);
  return fields
    .filter((field) => at(folded, field) !== at(carried, field))
    .map((field) => `${field} ${at(folded, field)} and not ${at(carried, field)}`)
    .join(', ');
};
