import { headers } from '@nats-io/transport-node';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import { HEADER, headerBytes } from '#adapters/commit-message.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import { ConnectionWatch } from './connection.ts';
import { Mux, type MuxOptions } from './mux.ts';
import { Publisher } from './publisher.ts';

const SHARD = '0' as Shard;
const LIMIT_BYTES = 1_048_576;

let bus: BusUnderTest;
beforeAll(async () => {
  bus = await startBusUnderTest();
});
afterAll(() => bus.stop());

/** A publisher on its own connection through the faulty network. */
const open = async (options: MuxOptions = {}) => {
  const { nc, jetstream, close } = await bus.connect();
  await jetstream.ensureStreams({ shards: [SHARD] });
  const mux = new Mux(nc, new ConnectionWatch(nc), options);
  const statuses: string[] = [];
  void (async () => {
    for await (const { type } of nc.status()) statuses.push(type);
  })();
  return {
    nc,
    mux,
    publisher: new Publisher(nc, mux),
    statuses,
    close: async () => {
      mux.close();
      await close();
    },
  };
};
const subject = (id: string): string => `dsec.ev.${SHARD}.alpha.sandbox.edge-a.${id}`;

describe('size', () => {
  test('up to the last byte is stored; one more, body or header, fails here and the connection stays up', async () => {
    const { publisher, statuses, nc, close } = await open();
    const neighbours = Array.from({ length: 50 }, (_, i) => publisher.publish(subject(`n-${i}`), Buffer.from('x'), {}));
    expect(await publisher.publish(subject('fits'), Buffer.alloc(LIMIT_BYTES), {})).toMatchObject({ outcome: 'stored' });
    for (const [bytes, fields] of [
      [LIMIT_BYTES + 1, {}],
      [LIMIT_BYTES - 6, { [HEADER.messageId]: 'x'.repeat(40) }],
      [3 * LIMIT_BYTES, {}],
    ] as const) {
      expect(await publisher.publish(subject('large'), Buffer.alloc(bytes), fields)).toMatchObject({
        outcome: 'rejected',
        error: { code: 'PAYLOAD_TOO_LARGE', outcome: 'not_applied', details: { limitBytes: LIMIT_BYTES } },
      });
    }
    expect((await Promise.all(neighbours)).every(({ outcome }) => outcome === 'stored')).toBe(true);
    await nc.flush();
    expect(statuses).toEqual([]);
    await close();
  });

  test('headers are counted as the client will encode them', () => {
    const name = fc.stringMatching(/^[A-Za-z][A-Za-z-]{0,20}$/);
    const value = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((s) => !/[\r\n]/.test(s) && s === s.trim());
    fc.assert(
      fc.property(fc.dictionary(name, value, { minKeys: 1, maxKeys: 6 }), (fields) => {
        const block = headers();
        for (const [k, v] of Object.entries(fields)) block.append(k, v);
        expect(headerBytes(fields)).toBe((block as unknown as { encode(): Uint8Array }).encode().byteLength);
      }),
    );
    expect(headerBytes({})).toBe(0);
  });
});

describe('answers', () => {
  test('a subject that no stream takes is unknown, not lost', async () => {
    const { publisher, close } = await open();
    expect(await publisher.publish('dsec.ev.9.alpha.sandbox.e.x', Buffer.from('x'), {})).toMatchObject({
      outcome: 'unknown',
      error: { code: 'BUS_UNAVAILABLE', retry: 'same' },
    });
    await close();
  });

  test('an option that the stream can never accept is refused for good', async () => {
    const { publisher, close } = await open();
    expect(await publisher.publish(subject('ttl'), Buffer.from('x'), { [HEADER.ttl]: 'soon' })).toMatchObject({
      outcome: 'rejected',
      error: { code: 'INVALID_ARGUMENT' },
    });
    await close();
  });

  test('an answer that does not come in time is unknown, and one that comes later harms nobody', async () => {
    const { publisher, mux, close } = await open({ timeoutMs: 200 });
    bus.proxy.holdAnswers();
    expect(await publisher.publish(subject('slow'), Buffer.from('x'), {})).toMatchObject({ outcome: 'unknown', error: { details: { reason: 'timeout' } } });
    expect(mux.outstanding).toBe(0);
    bus.proxy.cut();
    await close();
  });

  test('when the connection breaks everything outstanding is unknown at once, not after its time-out', async () => {
    const { publisher, mux, close } = await open({ timeoutMs: 600_000 });
    bus.proxy.holdAnswers();
    const outstanding = Array.from({ length: 100 }, (_, i) => publisher.publish(subject(`cut-${i}`), Buffer.from('x'), {}));
    expect(mux.outstanding).toBe(100);
    bus.proxy.cut();
    for (const outcome of await Promise.all(outstanding)) expect(outcome).toMatchObject({ outcome: 'unknown', error: { details: { reason: 'disconnected' } } });
    await close();
  });

  test('more unanswered requests than allowed are not sent', async () => {
    const { publisher, mux, close } = await open({ maxOutstanding: 10, timeoutMs: 600_000 });
    bus.proxy.holdAnswers();
    const outstanding = Array.from({ length: 10 }, (_, i) => publisher.publish(subject(`many-${i}`), Buffer.from('x'), {}));
    expect(await publisher.publish(subject('eleventh'), Buffer.from('x'), {})).toMatchObject({
      outcome: 'unknown',
      error: { code: 'OVERLOADED', retry: 'same' },
    });
    mux.close();
    for (const outcome of await Promise.all(outstanding)) expect(outcome).toMatchObject({ outcome: 'unknown', error: { details: { reason: 'closed' } } });
    expect(await publisher.publish(subject('late'), Buffer.from('x'), {})).toMatchObject({ outcome: 'unknown' });
    bus.proxy.cut();
    await close();
  });
});

test('thousands of appends at once are all answered, each with a sequence of its own', async () => {
  const { jetstream, close } = await bus.connect();
  const outcomes = await Promise.all(Array.from({ length: 4_000 }, (_, i) => jetstream.eventLog.append(anAppend(anAddress(SHARD, `sb-many-${i}`), 1, 0))));
  expect(outcomes.every(({ outcome }) => outcome === 'applied')).toBe(true);
  expect(new Set(outcomes.map((outcome) => (outcome.outcome === 'applied' ? outcome.sequence : 0))).size).toBe(4_000);
  await close();
});
