/** What every `CommandQueue` must do. Run by each adapter's own spec with a factory of its own. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CommandConsumer, CommandQueue, Delivery, EnqueueOutcome } from '#actors/ports/command-queue.ts';
import type { EdgeName } from '#bus/ids.ts';
import { createLaneSubject, edgeCommandFilter } from '#bus/subjects.ts';
import { HEADER, headerBytes } from '#adapters/commit-message.ts';

export type CommandQueueHarness = {
  readonly queue: CommandQueue;
  elapse(ms: number): Promise<void>;
  /** The next command is stored and its answer is lost. */
  loseNextAnswer(): Promise<void>;
  /** The bus dies the hard way; `during` runs while it is away; it comes back with what it had stored. */
  outage(during: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
};
export type CommandQueueFactory = (options: { readonly duplicateWindowMs: number; readonly ackWaitMs: number }) => Promise<CommandQueueHarness>;

const ACK_WAIT_MS = 1_000;
const DUPLICATE_WINDOW_MS = 60_000;
const MAX_PAYLOAD_BYTES = 1_048_576;
const PATIENCE = { timeout: 20_000, interval: 20 };
const EDGE_A = edgeCommandFilter('edge-a' as EdgeName);
const EDGE_B = edgeCommandFilter('edge-b' as EdgeName);

export const commandQueueContract = (name: string, factory: CommandQueueFactory): void => {
  describe(`command queue: ${name}`, () => {
    let harness: CommandQueueHarness;
    let queue: CommandQueue;
    let open: CommandConsumer[];
    let testNumber = 0;
    beforeEach(async () => {
      harness = await factory({ duplicateWindowMs: DUPLICATE_WINDOW_MS, ackWaitMs: ACK_WAIT_MS });
      queue = harness.queue;
      open = [];
      testNumber += 1; // a queue that survives its test still remembers the message ids
    });
    afterEach(async () => {
      await Promise.all(open.map((consumer) => consumer.close()));
      await harness.close();
    });

    const subjectOf = (id: string, edge = 'edge-a'): string => `dsec.cmd.edge.${edge}.${id}`;
    const enqueue = (id: string, edge = 'edge-a'): Promise<EnqueueOutcome> => queue.enqueue(subjectOf(id, edge), `alpha:${testNumber}:${id}`, Buffer.from(id));
    const put = async (...ids: string[]): Promise<number[]> => {
      const sequences: number[] = [];
      for (const id of ids) {
        let outcome = await enqueue(id);
        for (const deadline = performance.now() + PATIENCE.timeout; outcome.outcome === 'unknown' && performance.now() < deadline; outcome = await enqueue(id))
          await new Promise((resolve) => setTimeout(resolve, PATIENCE.interval));
        if (outcome.outcome !== 'applied') throw new Error(`expected applied, got ${JSON.stringify(outcome)}`);
        sequences.push(outcome.sequence);
      }
      return sequences;
    };
    type Options = Partial<Parameters<CommandQueue['consume']>[0]>;
    const consume = async (handler: (delivery: Delivery) => void | Promise<void>, options: Options = {}): Promise<CommandConsumer> => {
      const consumer = await queue.consume({ name: 'edge-a', filter: EDGE_A, fresh: true, maxInFlight: 16, ...options }, handler);
      open.push(consumer);
      return consumer;
    };
    const bodyOf = ({ data }: Delivery): string => Buffer.from(data).toString('utf8');
    /** Collects bodies; acknowledges unless told otherwise. */
    const collector = (act: (delivery: Delivery) => void = (delivery) => delivery.ack()) => {
      const seen: string[] = [];
      const handler = (delivery: Delivery): void => {
        seen.push(bodyOf(delivery));
        act(delivery);
      };
      return { seen, handler };
    };
    const until = (check: () => void): Promise<void> => vi.waitFor(check, PATIENCE);
    /** Whether nothing more comes: asks for proof by sending one more command through, and looks what arrived before it. */
    const flushed = async (seen: readonly string[], marker: string): Promise<void> => {
      await put(marker);
      await until(() => expect(seen).toContain(marker));
    };

    test('delivers what was enqueued before and after, oldest first, once', async () => {
      const sequences = await put('one', 'two');
      const deliveries: Delivery[] = [];
      await consume((delivery) => {
        deliveries.push(delivery);
        delivery.ack();
      });
      sequences.push(...(await put('three')));
      await until(() => expect(deliveries).toHaveLength(3));
      expect(deliveries.map(bodyOf)).toEqual(['one', 'two', 'three']);
      expect(deliveries.map(({ subject }) => subject)).toEqual(['one', 'two', 'three'].map((id) => subjectOf(id)));
      expect(deliveries.map(({ sequence }) => sequence)).toEqual(sequences);
      expect(deliveries.map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
    });

    test('takes a repetition for what it is', async () => {
      const [sequence] = await put('one');
      expect(await enqueue('one')).toEqual({ outcome: 'applied', sequence, duplicate: true });
      const { seen, handler } = collector();
      await consume(handler);
      await flushed(seen, 'end');
      expect(seen).toEqual(['one', 'end']);
    });

    test('a lost answer is unknown; the repetition is a duplicate', async () => {
      await harness.loseNextAnswer();
      expect(await enqueue('one')).toMatchObject({ outcome: 'unknown', error: { retry: 'same' } });
      await put('one');
      const { seen, handler } = collector();
      await consume(handler);
      await flushed(seen, 'end');
      expect(seen).toEqual(['one', 'end']);
    });

    test('refuses for good what is larger than the bus takes, headers counted', async () => {
      const messageId = `alpha:${testNumber}:large`;
      const room = MAX_PAYLOAD_BYTES - headerBytes({ [HEADER.messageId]: messageId });
      const large = (bytes: number): Promise<EnqueueOutcome> => queue.enqueue(subjectOf('large'), messageId, Buffer.alloc(bytes, 'x'));
      expect(await large(room + 1)).toMatchObject({ outcome: 'not_applied', error: { code: 'PAYLOAD_TOO_LARGE' } });
      expect(await large(MAX_PAYLOAD_BYTES + 1)).toMatchObject({ outcome: 'not_applied', error: { code: 'PAYLOAD_TOO_LARGE' } });
      expect(await large(room)).toMatchObject({ outcome: 'applied', duplicate: false });
    });

    test('keeps at most `maxInFlight` deliveries unacknowledged', async () => {
      await put('a', 'b', 'c', 'd', 'e');
      const held: Delivery[] = [];
      await consume((delivery) => void held.push(delivery), { maxInFlight: 2 });
      await until(() => expect(held).toHaveLength(2));
      held[0]?.ack();
      await until(() => expect(held).toHaveLength(3));
      held[1]?.ack();
      held[2]?.ack();
      await until(() => expect(held).toHaveLength(5));
      expect(held.map(bodyOf)).toEqual(['a', 'b', 'c', 'd', 'e']);
      for (const delivery of held) delivery.ack();
    });

    test('delivers again what was not acknowledged in time, and counts', async () => {
      await put('one');
      const attempts: number[] = [];
      await consume((delivery) => {
        attempts.push(delivery.attempt);
        if (delivery.attempt === 2) delivery.ack();
      });
      await until(() => expect(attempts).toEqual([1]));
      await harness.elapse(1.2 * ACK_WAIT_MS);
      await until(() => expect(attempts).toEqual([1, 2]));
    });

    test('does not hand out a second time what is still being worked on', async () => {
      await put('one');
      const started: string[] = [];
      let finish: () => void = () => {};
      const consumer = await consume(async (delivery) => {
        started.push(bodyOf(delivery));
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        delivery.ack();
      });
      await until(() => expect(started).toEqual(['one']));
      await harness.elapse(2.5 * ACK_WAIT_MS);
      finish();
      await consumer.close();
      const { seen, handler } = collector();
      await consume(handler);
      await flushed(seen, 'end');
      expect([...started, ...seen]).toEqual(['one', 'end']);
    });

    test('extend puts the redelivery off', async () => {
      await put('one');
      const held: Delivery[] = [];
      await consume((delivery) => void held.push(delivery));
      await until(() => expect(held).toHaveLength(1));
      for (let i = 0; i < 20; i += 1) {
        await harness.elapse(0.1 * ACK_WAIT_MS);
        held[0]?.extend();
      }
      expect(held).toHaveLength(1);
      held[0]?.ack();
    });

    test('retry gives back, discard removes, a failed handler gets it again', async () => {
      await put('again', 'bad', 'throws');
      const seen: string[] = [];
      await consume((delivery) => {
        const body = bodyOf(delivery);
        seen.push(`${body} ${delivery.attempt}`);
        if (body === 'bad') delivery.discard('nobody understands it');
        else if (delivery.attempt > 1) delivery.ack();
        else if (body === 'again') delivery.retry(100);
        else throw new Error('not today');
      });
      await until(() => expect(seen.length).toBeGreaterThanOrEqual(3));
      await harness.elapse(ACK_WAIT_MS);
      await until(() => expect(seen.toSorted()).toEqual(['again 1', 'again 2', 'bad 1', 'throws 1', 'throws 2']));
    });

    test('says only the first thing that a handler says', async () => {
      await put('one');
      const { seen, handler } = collector((delivery) => {
        delivery.ack();
        delivery.retry(1);
      });
      await consume(handler);
      await flushed(seen, 'end');
      expect(seen).toEqual(['one', 'end']);
    });

    test('a fresh consumer gets everything unacknowledged at once and in its order', async () => {
      await put('one', 'two');
      const before = collector(() => {});
      const first = await consume(before.handler);
      await until(() => expect(before.seen).toEqual(['one', 'two']));
      await first.close();
      await put('three');
      const after = collector();
      await consume(after.handler);
      await until(() => expect(after.seen).toEqual(['one', 'two', 'three']));
    });

    test('a consumer that is not fresh goes on where its name stood', async () => {
      await put('one');
      const before = collector();
      const first = await consume(before.handler, { fresh: false });
      await until(() => expect(before.seen).toEqual(['one']));
      await first.close();
      await put('two');
      const after = collector();
      await consume(after.handler, { fresh: false });
      await until(() => expect(after.seen).toEqual(['two']));
    });

    test('two processes share the consumer of a lane; each command goes to one of them', async () => {
      const lane = { name: 'lane-0', filter: createLaneSubject(0), fresh: false };
      const [one, two] = [collector(), collector()];
      await consume(one.handler, lane);
      await consume(two.handler, lane);
      const ids = Array.from({ length: 40 }, (_, i) => `create-${i}`);
      for (const id of ids) await queue.enqueue(createLaneSubject(0), `alpha:${testNumber}:${id}`, Buffer.from(id));
      await until(() => expect(one.seen.length + two.seen.length).toBe(ids.length));
      expect([...one.seen, ...two.seen].toSorted()).toEqual(ids.toSorted());
    });

    test('each filter has its own consumer; overlapping ones and impossible names are refused', async () => {
      const [a, b] = [collector(), collector()];
      await consume(a.handler);
      await consume(b.handler, { name: 'edge-b', filter: EDGE_B });
      await put('one');
      await enqueue('two', 'edge-b');
      await until(() => expect([a.seen, b.seen]).toEqual([['one'], ['two']]));
      await expect(consume(a.handler, { name: 'all', filter: 'dsec.cmd.edge.*.*' })).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED' });
      for (const bad of ['', 'edge.a', 'edge a', 'edge/a', 'x'.repeat(200)])
        await expect(consume(a.handler, { name: bad })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });

    test('close waits for the handlers that run', async () => {
      await put('one');
      let finish: () => void = () => {};
      const started = vi.fn();
      const consumer = await consume(async (delivery) => {
        started();
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        delivery.ack();
      });
      await until(() => expect(started).toHaveBeenCalled());
      let closed = false;
      const closing = consumer.close().then(() => {
        closed = true;
      });
      await put('two');
      expect(closed).toBe(false);
      finish();
      await closing;
      expect(started).toHaveBeenCalledTimes(1);
    });

    test('while the bus is away nothing is taken; afterwards delivery goes on by itself, in order, with nothing lost', { timeout: 60_000 }, async () => {
      await put('one', 'two');
      const held: Delivery[] = [];
      const done: string[] = [];
      await consume((delivery) => {
        done.push(bodyOf(delivery));
        if (done.length > 2) delivery.ack();
        else held.push(delivery); // decided, and the bus dies before it hears of it
      });
      await until(() => expect(held).toHaveLength(2));
      await harness.outage(async () => {
        expect(await enqueue('three')).toMatchObject({ outcome: 'unknown', error: { code: 'BUS_UNAVAILABLE' } });
        for (const delivery of held) delivery.ack();
      });
      await put('three', 'four');
      // What was acknowledged meanwhile comes again where that was lost, and does not where it was said in time.
      await until(() => expect([...new Set(done)]).toEqual(['one', 'two', 'three', 'four']));
    });

    test('who only looks sees what waits on a subject, in order, and takes nothing of it', async () => {
      const before = await queue.lastSequence();
      const sequences = await put('w1', 'w2');
      await put('other');
      const repeated = await queue.enqueue(subjectOf('w1'), `alpha:${testNumber}:w1-again`, Buffer.from('again'));
      expect(repeated).toMatchObject({ outcome: 'applied' });
      const seen = await queue.waiting(subjectOf('w1'), before, 10);
      expect(seen.map(({ subject, data }) => `${subject} ${Buffer.from(data)}`)).toEqual([`${subjectOf('w1')} w1`, `${subjectOf('w1')} again`]);
      expect(seen[0]?.sequence).toBe(sequences[0]);
      expect(await queue.waiting(subjectOf('w1'), before, 1)).toHaveLength(1);
      expect(await queue.waiting(subjectOf('w1'), seen[1]?.sequence ?? 0, 10)).toEqual([]);
      expect(await queue.lastSequence()).toBe(seen[1]?.sequence);

      const taken: string[] = [];
      await consume((delivery) => {
        taken.push(Buffer.from(delivery.data).toString());
        delivery.ack();
      });
      await vi.waitFor(() => expect(taken).toEqual(expect.arrayContaining(['w1', 'w2', 'other', 'again'])), PATIENCE);
      await vi.waitFor(async () => expect(await queue.waiting(subjectOf('w1'), before, 10)).toEqual([]), PATIENCE);
    });
  });
};
