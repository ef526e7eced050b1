/** INV-PROJ: however a stream is cut into batches, repeated and interrupted by restarts, the rows are the fold of its prefix. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ProjectName, Shard } from '#bus/ids.ts';
import { SANDBOX_STATUSES } from '#bus/sandbox/state.ts';
import { aSandboxCommit } from '#test/helpers/sandboxes.ts';
import { type ProjectionEntry, SandboxProjection } from './sandbox.projection.ts';

const SHARD = '0' as Shard;
const ALPHA = 'alpha' as ProjectName;
const BOUNDS = { lastSequence: 1_000_000, createdAt: 'then' };

type Step = { readonly n: number; readonly forget: boolean; readonly status: number };
/** A batch begins up to `back` entries before what is folded, takes `take` entries, and may come after a restart. */
type Feed = { readonly back: number; readonly take: number; readonly restart: boolean };

const stream = (steps: readonly Step[]): ProjectionEntry[] => {
  const versions = new Map<number, number>();
  return steps.map(({ n, forget, status }, i) => {
    const version = (versions.get(n) ?? 0) + 1;
    const stored = aSandboxCommit(n, version, 3 * i + 1, { status: SANDBOX_STATUSES[status] ?? 'running', labels: { parity: n % 2 === 0 ? 'even' : 'odd' } });
    if (forget) versions.delete(n);
    else versions.set(n, version);
    return forget ? { kind: 'forgotten', address: stored.address, sequence: stored.sequence } : { kind: 'commit', stored };
  });
};

/** What the rows must be, by the plainest means. */
const fold = (entries: readonly ProjectionEntry[], label?: string) => {
  const rows = new Map<string, { version: number; streamSequence: number; status: unknown }>();
  for (const entry of entries) {
    if (entry.kind === 'forgotten') rows.delete(entry.address.id);
    else
      rows.set(entry.stored.address.id, {
        version: entry.stored.commit.version,
        streamSequence: entry.stored.sequence,
        status: entry.stored.commit.state['status'],
      });
  }
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  return label === undefined ? sorted : sorted.filter(([id]) => (Number.parseInt(id.slice(5, 25), 16) % 2 === 0 ? 'even' : 'odd') === label);
};

const rowsOf = (projection: SandboxProjection, labels: Record<string, string>) =>
  projection
    .list({ project: ALPHA, labels, statuses: [], after: undefined, limit: 500 })
    .sandboxes.map(({ version, streamSequence, state }) => [state.id, { version, streamSequence, status: state.status }]);

test('rows are the fold of a prefix of the stream, whatever the batches, repetitions and restarts', () => {
  const step = fc.record({ n: fc.nat(7), forget: fc.integer({ min: 0, max: 9 }).map((x) => x === 0), status: fc.nat(SANDBOX_STATUSES.length - 1) });
  const feed = fc.record({ back: fc.nat(5), take: fc.nat(12), restart: fc.integer({ min: 0, max: 5 }).map((x) => x === 0) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(feed, { maxLength: 12 }), (steps: Step[], feeds: Feed[]) => {
      const entries = stream(steps);
      const directory = mkdtempSync(join(tmpdir(), 'dsec-projection-'));
      let projection = SandboxProjection.open(join(directory, 'p.sqlite'));
      try {
        projection.begin(SHARD, BOUNDS, 0);
        let folded = 0;
        for (const { back, take, restart } of feeds) {
          if (restart) {
            projection.close();
            projection = SandboxProjection.open(join(directory, 'p.sqlite'));
            projection.begin(SHARD, BOUNDS, 0);
          }
          const from = Math.max(0, folded - back);
          projection.apply(SHARD, entries.slice(from, folded + take), 0);
          projection.apply(SHARD, entries.slice(from, Math.min(from + 1, folded)), 0); // an old one alone must not bring an old row back
          folded = Math.min(entries.length, folded + take);
          const prefix = entries.slice(0, folded);
          expect(rowsOf(projection, {})).toEqual(fold(prefix));
          expect(rowsOf(projection, { parity: 'odd' })).toEqual(fold(prefix, 'odd'));
          const last = prefix.at(-1);
          expect(projection.asOf()).toEqual({ 0: last ? (last.kind === 'commit' ? last.stored.sequence : last.sequence) : 0 });
        }
      } finally {
        projection.close();
        rmSync(directory, { recursive: true });
      }
    }),
    { numRuns: 60 },
  );
});
