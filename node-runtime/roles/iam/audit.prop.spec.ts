/** Pages put together are the whole range, once and in order, whatever the page, the number of shards and their clocks' steps. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AuditRecord } from '#bus/api/iam.ts';
import type { ProjectName, Shard } from '#bus/ids.ts';
import type { CommitTrail, TrailCommit } from '#actors/ports/commit-trail.ts';
import { auditPage } from './audit.ts';

const PROJECT = 'p' as ProjectName;
const SHARDS = ['0', '1', '2'] as Shard[];

const commitAt = (shard: Shard, sequence: number, storedAtMs: number, principal: string): TrailCommit =>
  ({
    address: { shard, project: PROJECT, kind: 'sandbox', home: 'e', id: `sb-${shard}-${sequence}` },
    sequence,
    storedAtMs,
    commit: { at: 1, principal, version: 1, commandId: 'c', correlationId: 'c', events: [{ type: 'A' }, { type: 'A' }] },
  }) as unknown as TrailCommit;

/** Reads at most `most` at a time, whatever more it is asked for. */
const trailOf = (log: readonly TrailCommit[], most: number): CommitTrail => ({
  read: async ({ shard, from, limit }) => {
    const all = log.filter(({ address, sequence, storedAtMs }) => {
      if (address.shard !== shard) return false;
      return 'sequence' in from ? sequence >= from.sequence : storedAtMs >= from.storedAtMs;
    });
    const commits = all.slice(0, Math.min(limit, most));
    return { commits, more: all.length > commits.length };
  },
});

const stored = fc.record({ shard: fc.constantFrom(...SHARDS), wait: fc.nat({ max: 3 }), by: fc.constantFrom('p/one', 'p/two') });

test('every commit of the range, once, in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(stored, { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 7 }),
      fc.nat({ max: 60 }),
      fc.nat({ max: 120 }),
      fc.option(fc.constant('p/one'), { nil: undefined }),
      async (steps, most, limit, since, until, principal) => {
        let now = 0;
        const log = steps.map(({ shard, wait, by }, n) => {
          now += wait;
          return commitAt(shard, n + 1, now, by);
        });
        const found: AuditRecord[] = [];
        let after: string | undefined;
        for (let pages = 0, more = true; more; pages += 1) {
          const page = await auditPage(trailOf(log, most), SHARDS, PROJECT, { limit, since, until, principal, after } as never);
          expect(page.records.length).toBeLessThanOrEqual(limit);
          expect(pages).toBeLessThan(200);
          found.push(...page.records);
          ({ next: after, more } = page);
        }
        const wanted = log.filter(
          (one) => one.storedAtMs >= since && one.storedAtMs <= until && (principal === undefined || one.commit.principal === principal),
        );
        // in the order of the bus's clock; what two shards stored within one of its steps has none
        expect(found.map(({ storedAt }) => storedAt)).toEqual(wanted.map(({ storedAtMs }) => storedAtMs));
        for (const shard of SHARDS)
          expect(found.flatMap(({ actorId }) => (actorId.startsWith(`sb-${shard}-`) ? [actorId] : []))).toEqual(
            wanted.flatMap(({ address }) => (address.shard === shard ? [address.id] : [])),
          );
      },
    ),
    { numRuns: 300 },
  );
});

test('a page that goes on later sees what came since, and distinct events only', async () => {
  const log = [commitAt('0' as Shard, 1, 10, 'p/one')];
  const first = await auditPage(trailOf(log, 9), SHARDS, PROJECT, { limit: 10 } as never);
  expect(first).toMatchObject({ more: false, records: [{ events: ['A'], storedAt: 10 }] });
  log.push(commitAt('1' as Shard, 1, 11, 'p/one'));
  const second = await auditPage(trailOf(log, 9), SHARDS, PROJECT, { limit: 10, after: first.next } as never);
  expect(second.records.map(({ actorId }) => actorId)).toEqual(['sb-1-1']);
});

test('a place that no page has named is refused', async () => {
  for (const after of ['', 'x', '0:1,', '0:-1', 'A:1'])
    await expect(auditPage(trailOf([], 9), SHARDS, PROJECT, { limit: 1, after } as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});
