import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import type { AppendOutcome, StoredCommit } from '#actors/ports/event-log.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import { EPOCH_MS } from '../kernel/clock.ts';
import { EventStore } from './event-store.ts';

const shard = '0' as Shard;
const WINDOW_MS = 1_000;

type Op = { readonly kind: 'append' | 'repeat' | 'stale' | 'forget' | 'wait'; readonly actor: number; readonly ms: number };

const ops = fc.array(
  fc.record({
    kind: fc.constantFrom('append', 'append', 'append', 'repeat', 'stale', 'forget', 'wait'),
    actor: fc.nat(3),
    ms: fc.nat(3 * WINDOW_MS),
  }) as fc.Arbitrary<Op>,
  { maxLength: 40 },
);

/** Error texts aside, which name subjects in both. */
const said = (outcome: AppendOutcome) => ({
  outcome: outcome.outcome,
  sequence: outcome.outcome === 'applied' ? outcome.sequence : null,
  code: outcome.outcome === 'applied' ? null : outcome.error.code,
});

test('lean answers as exact does, whatever is appended, repeated, overtaken and forgotten', () => {
  fc.assert(
    fc.property(ops, (run) => {
      const stores = (['exact', 'lean'] as const).map((keeping) => new EventStore({ shards: [shard], keeping, duplicateWindowMs: WINDOW_MS }));
      const heads = new Map<number, { readonly sequence: number; readonly version: number; readonly previous: number }>();
      let nowMs = EPOCH_MS;
      for (const { kind, actor, ms } of run) {
        if (kind === 'wait') {
          nowMs += ms;
          continue;
        }
        const address = anAddress(shard, `sb-${actor}`);
        const head = heads.get(actor) ?? { sequence: 0, version: 0, previous: 0 };
        const answers = stores.map((store) => {
          if (kind === 'forget') return store.forget(nowMs, address, head.sequence, 60_000);
          if (kind === 'repeat') return store.append(nowMs, anAppend(address, Math.max(1, head.version), head.previous));
          if (kind === 'stale') return store.append(nowMs, anAppend(address, head.version + 7, head.sequence + 7, 'other'));
          return store.append(nowMs, anAppend(address, head.version + 1, head.sequence));
        });
        const [exact, lean] = answers.map(said);
        expect(lean).toEqual(exact);
        if (exact?.outcome === 'applied' && exact.sequence !== null && exact.sequence > head.sequence)
          heads.set(actor, { sequence: exact.sequence, version: kind === 'forget' ? 0 : head.version + 1, previous: head.sequence });
        const [a, b] = stores.map((store) => store.last(nowMs, address));
        expect(b?.kind).toBe(a?.kind);
        if (a?.kind === 'commit' && b?.kind === 'commit') expect(withoutSeen(b.stored)).toEqual(withoutSeen(a.stored));
      }
    }),
  );
});

/** Lean lets go of what nobody reads of a newest commit. */
const withoutSeen = ({ commit: { events: _, causationId: __, ...commit }, ...stored }: StoredCommit) => ({ ...stored, commit });
