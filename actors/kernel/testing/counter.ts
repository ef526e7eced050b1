/** The smallest actor: it adds up. With a key an addition counts once; without one a doubled append would show in the total. */
import { DsecError, wireError } from '#bus/errors.ts';
import type { ProjectName, Shard } from '#bus/ids.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import { accept, type ActorDefinition, type Effect, ignore, reject } from '../definition.ts';

export type Counter = { readonly total: number; readonly keys: readonly string[] };
export type Add = { readonly type: 'Add'; readonly n: number; readonly key?: string };
export type Added = { readonly type: 'Added'; readonly n: number; readonly key: string | null };

export const counterDefinition: ActorDefinition<Counter, Add, Added, Effect> = {
  kind: 'job',
  schema: 1,
  decide: (state, { n, key }) => {
    if (n === 0) return ignore('nothing to add');
    if (n < 0) return reject(wireError('INVALID_ARGUMENT', 'only adds'));
    if (key !== undefined && state?.keys.includes(key)) return ignore('added already');
    return accept({ type: 'Added', n, key: key ?? null });
  },
  evolve: (state, { n, key }) => ({ total: (state?.total ?? 0) + n, keys: key === null ? (state?.keys ?? []) : [...(state?.keys ?? []), key] }),
  pendingEffects: ({ total }) => [{ key: `show:${total}`, type: 'show' }],
  deadlines: () => [],
  isOver: () => false,
  parseState: (raw, schema = 1) => {
    if (schema > 1) throw DsecError.of('UNSUPPORTED_VERSION', 'a counter from the future');
    const { total, keys } = raw as Partial<Counter>;
    if (typeof total !== 'number' || !Array.isArray(keys)) throw DsecError.of('MALFORMED_MESSAGE', 'not a counter');
    return { total, keys };
  },
  forgotten: ({ id }) => wireError('KEY_EXPIRED', `counter ${id} was forgotten`),
};

export const counterAddress = (id = 'counter-1'): ActorAddress => ({ shard: '0' as Shard, project: 'acme' as ProjectName, kind: 'job', home: '_', id });
