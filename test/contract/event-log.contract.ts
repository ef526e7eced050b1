/** What every `EventLog` must do. Run by each adapter's own spec with a factory of its own. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AppendOutcome, AppendRequest, EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { EdgeName, ProjectName, Shard } from '#bus/ids.ts';
import { type ActorAddress, commitSubject, outSubject } from '#bus/subjects.ts';
import { commitHeaders, headerBytes } from '#adapters/commit-message.ts';
import { aCommit, anAddress, anAppend } from '#test/helpers/commits.ts';

export type EventLogHarness = {
  readonly log: EventLog;
  /** A shard whose stream is empty. */
  readonly shard: Shard;
  /** Lets time pass for the log. */
  elapse(ms: number): Promise<void>;
  /** The next write is stored and its answer is lost. */
  loseNextAnswer(): Promise<void>;
  /** The bus dies the hard way; `during` runs while it is away; it comes back with what it had stored. */
  outage(during: () => Promise<void>): Promise<void>;
  /** What was seen on `dsec.out` of this shard, in order. */
  republished(): readonly { readonly subject: string; readonly bytes: number }[];
  /** Stores bytes on an actor's subject, past the port. */
  inject(address: ActorAddress, data: Uint8Array): Promise<void>;
  close(): Promise<void>;
};
export type EventLogFactory = (options: { readonly duplicateWindowMs: number }) => Promise<EventLogHarness>;

const DUPLICATE_WINDOW_MS = 1_000;
const MAX_PAYLOAD_BYTES = 1_048_576;
/** Long enough for a server to come back on a busy machine; a wait ends as soon as its condition holds. */
const PATIENCE = { timeout: 20_000, interval: 20 };

export const eventLogContract = (name: string, factory: EventLogFactory): void => {
  describe(`event log: ${name}`, () => {
    let harness: EventLogHarness;
    let log: EventLog;
    let actor: ActorAddress;
    beforeEach(async () => {
      harness = await factory({ duplicateWindowMs: DUPLICATE_WINDOW_MS });
      log = harness.log;
      actor = anAddress(harness.shard, 'sb-one');
    });
    afterEach(() => harness.close());

    const at = (id: string, part: Partial<ActorAddress> = {}): ActorAddress => anAddress(harness.shard, id, part);
    const applied = (outcome: AppendOutcome): number => {
      if (outcome.outcome !== 'applied') throw new Error(`expected applied, got ${JSON.stringify(outcome)}`);
      return outcome.sequence;
    };
    const append = async (request: AppendRequest): Promise<number> => applied(await log.append(request));
    /** Repeats until the outcome is known, as every writer must. */
    const settle = async (request: AppendRequest): Promise<AppendOutcome> => {
      let outcome = await log.append(request);
      for (const deadline = performance.now() + PATIENCE.timeout; outcome.outcome === 'unknown' && performance.now() < deadline; ) {
        await new Promise((resolve) => setTimeout(resolve, PATIENCE.interval));
        outcome = await log.append(request);
      }
      return outcome;
    };
    const versions = async (address: ActorAddress): Promise<number[]> => (await log.history(address, 0, 100)).map(({ commit }) => commit.version);

    describe('append', () => {
      test('stores a commit that the next reader finds, with its address and sequence', async () => {
        expect(await log.last(actor)).toBeNull();
        const sequence = await append(anAppend(actor, 1, 0));
        expect(await log.last(actor)).toEqual({ address: actor, sequence, commit: anAppend(actor, 1, 0).commit });
      });

      test('orders the commits of an actor by the sequence that its writer has seen', async () => {
        const first = await append(anAppend(actor, 1, 0));
        const second = await append(anAppend(actor, 2, first));
        expect(second).toBeGreaterThan(first);
        expect((await log.last(actor))?.commit.version).toBe(2);
      });

      test('of two writers with the same expected sequence one wins, the other is told to reload', async () => {
        const first = await append(anAppend(actor, 1, 0));
        const outcomes = await Promise.all([log.append(anAppend(actor, 2, first, 'one')), log.append(anAppend(actor, 2, first, 'two'))]);
        expect(outcomes.filter(({ outcome }) => outcome === 'applied')).toHaveLength(1);
        const loser = outcomes.findIndex(({ outcome }) => outcome !== 'applied');
        expect(outcomes[loser]).toMatchObject({ outcome: 'not_applied', reason: 'conflict', error: { code: 'SUPERSEDED', outcome: 'not_applied' } });
        const newest = await log.last(actor);
        await append(anAppend(actor, 3, newest?.sequence ?? 0, 'loser'));
        expect(await versions(actor)).toEqual([1, 2, 3]);
      });

      test('many writers of one actor: exactly one commit per expected sequence', async () => {
        let sequence = 0;
        for (let version = 1; version <= 5; version += 1) {
          const outcomes = await Promise.all(Array.from({ length: 8 }, (_, w) => log.append(anAppend(actor, version, sequence, `w${w}`))));
          const winners = outcomes.filter(({ outcome }) => outcome === 'applied');
          expect(winners).toHaveLength(1);
          sequence = applied(winners[0] as AppendOutcome);
        }
        expect(await versions(actor)).toEqual([1, 2, 3, 4, 5]);
      });

      test('refuses a sequence that the actor never had', async () => {
        expect(await log.append(anAppend(actor, 1, 4_711))).toMatchObject({ outcome: 'not_applied', reason: 'conflict' });
        expect(await log.last(actor)).toBeNull();
      });

      test('does not disturb other actors', async () => {
        const others = await Promise.all(Array.from({ length: 50 }, (_, i) => append(anAppend(at(`sb-${i}`), 1, 0))));
        expect(new Set(others).size).toBe(50);
      });
    });

    describe('repetition', () => {
      test('of a stored append names the same sequence and stores nothing', async () => {
        const request = anAppend(actor, 1, 0);
        const sequence = await append(request);
        expect(await append(request)).toBe(sequence);
        expect(await versions(actor)).toEqual([1]);
      });

      test('after the window of message ids is over, still the same', async () => {
        const request = anAppend(actor, 1, 0);
        const sequence = await append(request);
        await harness.elapse(2.5 * DUPLICATE_WINDOW_MS);
        expect(await append(request)).toBe(sequence);
        expect(await versions(actor)).toEqual([1]);
      });

      test('after the bus was killed and came back, still the same', async () => {
        const request = anAppend(actor, 1, 0);
        const sequence = await append(request);
        await harness.outage(async () => {});
        expect(await settle(request)).toEqual({ outcome: 'applied', sequence });
        expect(await versions(actor)).toEqual([1]);
      });

      test('after another writer went on from it, still the same', async () => {
        const request = anAppend(actor, 1, 0);
        const sequence = await append(request);
        await append(anAppend(actor, 2, sequence));
        expect(await append(request)).toBe(sequence);
        expect(await versions(actor)).toEqual([1, 2]);
      });

      test('after a lost answer finds what was stored', async () => {
        const request = anAppend(actor, 1, 0);
        await harness.loseNextAnswer();
        expect(await log.append(request)).toMatchObject({ outcome: 'unknown', error: { retry: 'same', outcome: 'unknown' } });
        const sequence = applied(await settle(request));
        expect((await log.last(actor))?.sequence).toBe(sequence);
        expect(await versions(actor)).toEqual([1]);
      });

      test('after a lost answer loses to whoever had gone on from an older state', async () => {
        const first = await append(anAppend(actor, 1, 0));
        await append(anAppend(actor, 2, first, 'other'));
        expect(await settle(anAppend(actor, 2, first, 'late'))).toMatchObject({ outcome: 'not_applied', reason: 'conflict' });
      });

      test('a message id that another actor has used never passes for a stored commit', async () => {
        const first = anAppend(actor, 1, 0);
        await append(first);
        const other = at('sb-other');
        const outcome = await log.append({ ...anAppend(other, 1, 0), messageId: first.messageId });
        expect(outcome.outcome).not.toBe('applied');
        expect(await log.last(other)).toBeNull();
      });
    });

    describe('size', () => {
      /** An append whose message has exactly this many bytes, headers included. */
      const ofSize = (bytes: number): AppendRequest => {
        const request = anAppend(actor, 1, 0);
        const frame = headerBytes(commitHeaders(request.messageId, 0));
        const bare = Buffer.byteLength(JSON.stringify(aCommit(actor, 1, { pad: '' })));
        return { ...request, commit: aCommit(actor, 1, { pad: 'x'.repeat(bytes - frame - bare) }) };
      };

      test('up to the limit of the bus, headers counted, a commit is stored', async () => {
        await append(ofSize(MAX_PAYLOAD_BYTES));
        expect((await log.last(actor))?.commit.version).toBe(1);
      });

      test.each([1, 40, 1_000_000])('%i bytes above it is refused for good, and nobody else notices', async (excess) => {
        const neighbours = Array.from({ length: 20 }, (_, i) => log.append(anAppend(at(`sb-${i}`), 1, 0)));
        const outcome = await log.append(ofSize(MAX_PAYLOAD_BYTES + excess));
        expect(outcome).toMatchObject({ outcome: 'not_applied', reason: 'rejected', error: { code: 'PAYLOAD_TOO_LARGE', retry: 'never' } });
        for (const neighbour of await Promise.all(neighbours)) applied(neighbour);
        expect(await log.last(actor)).toBeNull();
        await append(anAppend(actor, 1, 0));
      });
    });

    describe('reading', () => {
      test('lastOfEach answers the newest commit of each of 3,000 actors, in stream order, filtered', { timeout: 60_000 }, async () => {
        const edgeB = { home: 'edge-b' as EdgeName };
        const mine = Array.from({ length: 3_000 }, (_, i) => at(`sb-${i}`));
        const firsts = await Promise.all(mine.map((address) => append(anAppend(address, 1, 0))));
        await Promise.all(mine.slice(0, 500).map((address, i) => append(anAppend(address, 2, firsts[i] ?? 0))));
        await Promise.all([append(anAppend(at('sb-far', edgeB), 1, 0)), append(anAppend(at('rq-one', { kind: 'request', home: '_' }), 1, 0))]);
        const gone = await append(anAppend(at('sb-gone'), 1, 0));
        applied(await log.forget(at('sb-gone'), gone, 60_000));

        const newest = await log.lastOfEach({ shard: harness.shard, kind: 'sandbox', home: 'edge-a' as EdgeName });
        expect(newest).toHaveLength(3_000);
        expect(newest.map(({ sequence }) => sequence)).toEqual(newest.map(({ sequence }) => sequence).sort((a, b) => a - b));
        expect(newest.filter(({ commit }) => commit.version === 2)).toHaveLength(500);
        expect(new Set(newest.map(({ address }) => address.id)).size).toBe(3_000);
        expect((await log.lastOfEach({ shard: harness.shard, ...edgeB })).map(({ address }) => address.id)).toEqual(['sb-far']);
        expect(await log.lastOfEach({ shard: harness.shard, project: 'nobody' as ProjectName })).toEqual([]);
        expect(await log.lastOfEach({ shard: harness.shard })).toHaveLength(3_002);
        expect(await log.addressesOf({ shard: harness.shard, ...edgeB })).toEqual([at('sb-far', edgeB)]);
        expect(await log.addressesOf({ shard: harness.shard, project: 'nobody' as ProjectName })).toEqual([]);
        const named = new Set((await log.addressesOf({ shard: harness.shard })).map(({ id }) => id));
        named.delete('sb-gone'); // who was forgotten may be named
        expect(named.size).toBe(3_002);
      });

      test('history answers in pages by version', async () => {
        let sequence = 0;
        for (let version = 1; version <= 7; version += 1) sequence = await append(anAppend(actor, version, sequence));
        const page = async (after: number, limit: number): Promise<number[]> => (await log.history(actor, after, limit)).map(({ commit }) => commit.version);
        expect(await page(0, 3)).toEqual([1, 2, 3]);
        expect(await page(3, 3)).toEqual([4, 5, 6]);
        expect(await page(6, 3)).toEqual([7]);
        expect(await page(7, 3)).toEqual([]);
        expect(await page(0, 0)).toEqual([]);
        expect(await log.history(at('sb-none'), 0, 10)).toEqual([]);
      });

      test('bounds tell the range of the stream and when it was made', async () => {
        const before = await log.bounds(harness.shard);
        expect(before.lastSequence).toBe(0);
        const first = await append(anAppend(actor, 1, 0));
        const last = await append(anAppend(actor, 2, first));
        const after = await log.bounds(harness.shard);
        expect(after).toEqual({ firstSequence: first, lastSequence: last, createdAt: before.createdAt });
        expect(Number.isNaN(Date.parse(after.createdAt))).toBe(false);
      });
    });

    describe('forget', () => {
      test('leaves nothing of the actor, and a further commit must follow the tombstone', async () => {
        const first = await append(anAppend(actor, 1, 0));
        const second = await append(anAppend(actor, 2, first));
        const tombstone = applied(await log.forget(actor, second, 60_000));
        expect(tombstone).toBeGreaterThan(second);
        expect(await log.last(actor)).toBeNull();
        expect(await log.history(actor, 0, 10)).toEqual([]);
        expect(await log.lastOfEach({ shard: harness.shard })).toEqual([]);
        expect(await log.append(anAppend(actor, 1, 0, 'reborn'))).toMatchObject({ outcome: 'not_applied', reason: 'conflict' });
        await append(anAppend(actor, 1, tombstone, 'reborn'));
        expect((await log.last(actor))?.commit.state).toMatchObject({ writer: 'reborn' });
      });

      test('is refused when the actor has moved on, and may be repeated', async () => {
        const first = await append(anAppend(actor, 1, 0));
        const second = await append(anAppend(actor, 2, first));
        expect(await log.forget(actor, first, 60_000)).toMatchObject({ outcome: 'not_applied', reason: 'conflict' });
        expect(await versions(actor)).toEqual([1, 2]);
        const tombstone = applied(await log.forget(actor, second, 60_000));
        expect(applied(await log.forget(actor, second, 60_000))).toBe(tombstone);
      });

      test('of an actor that never was keeps it from ever beginning, until the tombstone goes', async () => {
        const tombstone = applied(await log.forget(actor, 0, 60_000));
        expect(applied(await log.forget(actor, 0, 60_000))).toBe(tombstone);
        expect(await log.append(anAppend(actor, 1, 0))).toMatchObject({ outcome: 'not_applied', reason: 'conflict' });
        expect(await log.last(actor)).toBeNull();
        const first = await append(anAppend(at('sb-two'), 1, 0));
        expect(await log.forget(at('sb-two'), 0, 60_000)).toMatchObject({ outcome: 'not_applied', reason: 'conflict' });
        expect((await log.last(at('sb-two')))?.sequence).toBe(first);
      });

      test('the tombstone disappears in its time and brings nothing back', async () => {
        const first = await append(anAppend(actor, 1, 0));
        const second = await append(anAppend(actor, 2, first));
        applied(await log.forget(actor, second, 1_000));
        await harness.elapse(1_500);
        await vi.waitFor(async () => append(anAppend(actor, 1, 0, 'reborn')), PATIENCE);
        expect(await versions(actor)).toEqual([1]);
      });
    });

    describe('tail', () => {
      const collect = () => {
        const seen: StoredCommit[] = [];
        return {
          seen,
          ids: () => seen.map(({ address, commit }) => `${address.id}/${commit.version}`),
          handler: (stored: StoredCommit) => void seen.push(stored),
        };
      };

      test('delivers what lies there and what comes, from the sequence asked for, tombstones included', async () => {
        const first = await append(anAppend(actor, 1, 0));
        const second = await append(anAppend(actor, 2, first));
        const { ids, handler } = collect();
        const forgotten: string[] = [];
        const tail = await log.tail(harness.shard, second, handler, ({ address }) => void forgotten.push(`${address.id} after ${ids().length}`));
        await vi.waitFor(() => expect(ids()).toEqual(['sb-one/2']), PATIENCE);
        const third = await append(anAppend(actor, 3, second));
        await vi.waitFor(() => expect(ids()).toEqual(['sb-one/2', 'sb-one/3']), PATIENCE); // a tombstone takes what it replaces from tails that are behind, too
        applied(await log.forget(actor, third, 60_000));
        await append(anAppend(at('sb-two'), 1, 0));
        await vi.waitFor(() => expect(ids()).toEqual(['sb-one/2', 'sb-one/3', 'sb-two/1']), PATIENCE);
        expect(forgotten).toEqual(['sb-one after 2']);
        await tail.close();
      });

      test('awaits the handler and ends with close', async () => {
        for (let i = 0; i < 5; i += 1) await append(anAppend(at(`sb-${i}`), 1, 0));
        const release: (() => void)[] = [];
        const tail = await log.tail(harness.shard, 1, () => new Promise<void>((resolve) => release.push(resolve)));
        await vi.waitFor(() => expect(release).toHaveLength(1), PATIENCE);
        release[0]?.();
        await vi.waitFor(() => expect(release).toHaveLength(2), PATIENCE);
        let closed = false;
        const closing = tail.close().then(() => {
          closed = true;
        });
        await append(anAppend(at('sb-late'), 1, 0));
        expect(closed).toBe(false);
        release[1]?.();
        await closing;
        expect(release).toHaveLength(2);
      });

      test('gives a commit again to a handler that failed on it', async () => {
        await append(anAppend(actor, 1, 0));
        await append(anAppend(at('sb-two'), 1, 0));
        const attempts: string[] = [];
        const tail = await log.tail(harness.shard, 1, ({ address }) => {
          attempts.push(address.id);
          if (attempts.length === 1) throw new Error('not today');
        });
        await vi.waitFor(() => expect(attempts).toHaveLength(1), PATIENCE);
        await harness.elapse(1_000);
        await vi.waitFor(() => expect(attempts).toEqual(['sb-one', 'sb-one', 'sb-two']), PATIENCE);
        await tail.close();
      });

      test('goes on after the bus was killed: nothing missing, nothing out of order', { timeout: 60_000 }, async () => {
        const { seen, handler } = collect();
        const tail = await log.tail(harness.shard, 1, handler);
        let sequence = 0;
        for (let version = 1; version <= 100; version += 1) {
          if (version === 50) {
            const request = anAppend(actor, version, sequence);
            await harness.outage(async () => expect(await log.append(request)).toMatchObject({ outcome: 'unknown' }));
            sequence = applied(await settle(request));
          } else sequence = await append(anAppend(actor, version, sequence));
        }
        await vi.waitFor(() => expect(seen.at(-1)?.sequence).toBe(sequence), PATIENCE);
        expect(seen.map(({ commit }) => commit.version)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
        await tail.close();
      });
    });

    describe('outage', () => {
      test('writes are unknown and reads say that the bus is away; both work again afterwards', { timeout: 60_000 }, async () => {
        const sequence = await append(anAppend(actor, 1, 0));
        await harness.outage(async () => {
          expect(await log.append(anAppend(actor, 2, sequence))).toMatchObject({ outcome: 'unknown', error: { code: 'BUS_UNAVAILABLE' } });
          await expect(log.last(actor)).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
          await expect(log.lastOfEach({ shard: harness.shard })).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
        });
        expect(await settle(anAppend(actor, 2, sequence))).toMatchObject({ outcome: 'applied' });
        expect(await versions(actor)).toEqual([1, 2]);
      });
    });

    describe('republished', () => {
      test('is what was stored and nothing else', async () => {
        const first = await append(anAppend(actor, 1, 0));
        await Promise.all(['one', 'two', 'three'].map((writer) => log.append(anAppend(actor, 2, first, writer))));
        await log.append(anAppend(actor, 9, 4_711));
        const newest = await log.last(actor);
        applied(await log.forget(actor, newest?.sequence ?? 0, 60_000));
        await append(anAppend(at('sb-end'), 1, 0));
        await vi.waitFor(() => expect(harness.republished().at(-1)?.subject).toBe(outSubject(at('sb-end'))), PATIENCE);
        expect(harness.republished().map(({ subject, bytes }) => [subject, bytes > 0])).toEqual([
          [outSubject(actor), true],
          [outSubject(actor), true],
          [outSubject(actor), false],
          [outSubject(at('sb-end')), true],
        ]);
      });
    });

    describe('what nobody can read', () => {
      test('is an error of its own actor and keeps no other from being read', async () => {
        await append(anAppend(actor, 1, 0));
        const broken = at('sb-broken');
        await harness.inject(broken, Buffer.from('{"v":1,"no":"commit"}'));
        await append(anAppend(at('sb-two'), 1, 0));
        await expect(log.last(broken)).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE', message: expect.stringContaining(commitSubject(broken)) });
        expect((await log.lastOfEach({ shard: harness.shard })).map(({ address }) => address.id)).toEqual(['sb-one', 'sb-two']);
        const seen: string[] = [];
        const tail = await log.tail(harness.shard, 1, ({ address }) => void seen.push(address.id));
        await vi.waitFor(() => expect(seen).toEqual(['sb-one', 'sb-two']), PATIENCE);
        await tail.close();
      });

      test('a commit of a newer program stops who would take its actor for absent', async () => {
        const newer = at('sb-newer');
        await harness.inject(newer, Buffer.from(JSON.stringify({ ...aCommit(newer, 1), v: 99 })));
        await expect(log.last(newer)).rejects.toMatchObject({ code: 'UNSUPPORTED_VERSION' });
        await expect(log.lastOfEach({ shard: harness.shard })).rejects.toMatchObject({ code: 'UNSUPPORTED_VERSION' });
      });
    });
  });
};
