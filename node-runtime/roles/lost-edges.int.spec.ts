/**
 * A node that was lost and what was on its way to it, on a real bus: placements take it back while the node is away, the node refuses
 * the same when it returns, and nothing is taken back here and admitted there.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect } from 'effect';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EdgeState } from '#bus/edge/schema.ts';
import { type CommandEnvelope, decodeCommand, encode } from '#bus/envelope.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { COMMANDS_STREAM, edgeAddress, edgeCommandSubject, laneOf, reportLaneSubject, SYSTEM_SHARD } from '#bus/subjects.ts';
import { sandboxId, requestId } from '#bus/testing/common-samples.ts';
import { launches } from '#bus/testing/sandbox-samples.ts';
import type { DurationMs } from '#bus/units.ts';
import { capacity, LEASE_MS } from '#actors/edge/testing/samples.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import type { JetStreamBus } from '#adapters/jetstream/mod.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { createLog } from '../log/log.ts';
import { type Identity, openIdentity } from './edge/identity.ts';
import { LostEdges } from './placement/lost-edges.ts';

const PROJECT = 'acme' as ProjectName;
const LANES = 4;
const LANE = reportLaneSubject(laneOf(PROJECT, LANES));
const log = createLog('test', 'silent');

let server: BusUnderTest;
let connection: NatsConnection;
let bus: JetStreamBus;
let close: () => Promise<void>;
/** A node of its own for each test: what one leaves in the queue is nobody else's. */
let edge: EdgeName;
let number = 0;

beforeAll(async () => {
  server = await startBusUnderTest();
  ({ nc: connection, jetstream: bus, close } = await server.connect());
  await bus.ensureStreams({ shards: [SYSTEM_SHARD, '3'] as never });
});
afterAll(async () => {
  await close();
  await server.stop();
});
beforeEach(() => {
  number += 1;
  edge = `edge-${number}` as EdgeName;
});
afterEach(() => server.admin.empty(COMMANDS_STREAM));

/** One life of the node, from its registration on; ended in order when `during` is over. */
const life = <T>(during: (identity: Identity) => Promise<T>, queue: CommandQueue = bus.commandQueue): Promise<T> => {
  const silently = { onFence: () => {}, onSuperseded: () => {}, onLost: () => {} };
  const options = { edge, capacity, leaseMs: LEASE_MS, connection, queue, eventLog: bus.eventLog, clock: systemClock, log, ...silently };
  return Effect.runPromise(Effect.scoped(Effect.flatMap(openIdentity(options), (identity) => Effect.promise(() => during(identity)))));
};
const stateAfterReturn = (queue?: CommandQueue): Promise<EdgeState> => life(async ({ state }) => state(), queue);

const isLost = async (): Promise<void> =>
  life(async ({ driver, state }) => {
    const { generation, leaseUntil } = state();
    const found = { type: 'DeclareLost' as const, generation, leaseUntil, silentMs: (LEASE_MS + 1) as DurationMs, reason: 'silent' };
    const id = `system:${edge}:lost`;
    const result = await driver.submit(edgeAddress(edge), found, { commandId: id, correlationId: id, principal: 'watcher', at: systemClock.now() });
    expect(result).toMatchObject({ ok: true, decision: 'accepted' });
  });

const sendCreate = async (): Promise<number> => {
  const id = `${PROJECT}:create-for-${edge}-${systemClock.monotonicMs()}`;
  const data = { ...launches.two, items: [{ sandboxId: sandboxId.replace('edge-1', edge), index: 0, attempt: 0 }] };
  const envelope = { v: 1, id, at: systemClock.now(), project: PROJECT, principal: 'test', correlationId: id, data } as CommandEnvelope;
  const sent = await bus.commandQueue.enqueue(edgeCommandSubject(edge, '_'), id, encode('command', envelope));
  if (sent.outcome !== 'applied') throw new Error(sent.error.message);
  return sent.sequence;
};

const startTakingBack = (queue: CommandQueue = bus.commandQueue): Promise<LostEdges> =>
  LostEdges.start({ connection, eventLog: bus.eventLog, queue, clock: systemClock, log, laneCount: LANES });
const reported = async () => (await bus.commandQueue.waiting(LANE, 0, 100)).map(({ data }) => decodeCommand(data).data);
const until = async (isSo: () => Promise<boolean> | boolean): Promise<void> => {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
};

/** A queue that does something right after it was asked for the first time. */
const afterFirst = (method: 'waiting' | 'lastSequence', then: () => Promise<unknown>): { readonly queue: CommandQueue; readonly calls: () => number } => {
  let calls = 0;
  const first = async <T>(answer: T): Promise<T> => {
    calls += 1;
    if (calls === 1) await then();
    return answer;
  };
  const real = bus.commandQueue;
  const queue: CommandQueue = {
    enqueue: (...given) => real.enqueue(...given),
    consume: (...given) => real.consume(...given),
    waiting: async (...given) => (method === 'waiting' ? first(await real.waiting(...given)) : real.waiting(...given)),
    lastSequence: async () => (method === 'lastSequence' ? first(await real.lastSequence()) : real.lastSequence()),
  };
  return { queue, calls: () => calls };
};

test('what waits for a lost node is refused in its stead, once, by however many; and is left for the node to refuse', async () => {
  await isLost();
  const sequence = await sendCreate();
  const [one, two] = await Promise.all([startTakingBack(), startTakingBack()]);
  await until(async () => (await reported()).length > 0);
  expect(await reported()).toMatchObject([{ type: 'ReportBatch', requestId, refused: [{ index: 0, attempt: 0, error: { code: 'EDGE_FENCED' } }], failed: [] }]);
  expect(await bus.commandQueue.waiting(edgeCommandSubject(edge, '_'), 0, 10)).toMatchObject([{ sequence }]);
  one.close();
  two.close();
  expect((await stateAfterReturn()).fencedSequence).toBeGreaterThanOrEqual(sequence);
});

test('nothing is taken back from a node that returned after its queue was read', async () => {
  await isLost();
  await sendCreate();
  const { queue } = afterFirst('waiting', stateAfterReturn);
  edge = `${edge}-beside` as EdgeName; // looked at after the first
  await isLost();
  await sendCreate();
  edge = edge.replace('-beside', '') as EdgeName;
  const lost = await startTakingBack(queue);
  await until(async () => (await reported()).length > 0);
  expect(await reported()).toMatchObject([{ refused: [{ error: { message: expect.stringContaining(`${edge}-beside `) } }] }]);
  lost.close();
});

test('what is sent while a node registers is below its fence before it admits anything', async () => {
  await isLost();
  let sequence = 0;
  const { queue } = afterFirst('lastSequence', async () => {
    sequence = await sendCreate();
  });
  const state = await stateAfterReturn(queue);
  expect(state).toMatchObject({ status: 'active', fencing: false });
  expect(state.fencedSequence).toBeGreaterThanOrEqual(sequence);
});

test('a node that dies between its registration and its fence makes up for it', async () => {
  await isLost();
  let sequence = 0;
  const real = afterFirst('lastSequence', async () => {
    sequence = await sendCreate();
  });
  const dying: CommandQueue = { ...real.queue, lastSequence: () => (real.calls() > 0 ? Promise.reject(new Error('killed')) : real.queue.lastSequence()) };
  await expect(stateAfterReturn(dying)).rejects.toThrow('killed');
  const stored = await bus.eventLog.last(edgeAddress(edge));
  expect(stored?.commit.state).toMatchObject({ status: 'active', fencing: true });
  const state = await stateAfterReturn();
  expect(state.fencing).toBe(false);
  expect(state.fencedSequence).toBeGreaterThanOrEqual(sequence);
});

test('a node that was not lost fences nothing', async () => {
  await stateAfterReturn();
  await sendCreate();
  expect(await stateAfterReturn()).toMatchObject({ generation: 2, fencing: false, fencedSequence: 0 });
});
