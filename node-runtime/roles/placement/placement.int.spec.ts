/** A placement on a real bus: what it sends of a request, and when. */
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CommandEnvelope, encode } from '#bus/envelope.ts';
import { type ClientKey, type EdgeName, type ProjectName, requestIdFor } from '#bus/ids.ts';
import { wireError } from '#bus/errors.ts';
import type { RequestState } from '#bus/request/schema.ts';
import { beatSubject, createLaneSubject, edgeCommandSubject, laneOf, requestAddress, SYSTEM_SHARD } from '#bus/subjects.ts';
import { beats } from '#bus/testing/edge-samples.ts';
import { place } from '#bus/testing/request-samples.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { ConfirmOutcome, Quota } from '#actors/ports/quota.ts';
import type { JetStreamBus } from '#adapters/jetstream/mod.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { createLog } from '../../log/log.ts';
import { Placement } from './placement.ts';

const PROJECT = 'acme' as ProjectName;
const EDGE = 'edge-1' as EdgeName;
const SHARDS = 1;
const LANES = 1;
const NOTHING = { sandboxes: 0, memoryMiB: 0, cpuMillis: 0, pids: 0, diskMiB: 0, descriptors: 0 };

let server: BusUnderTest;
let connection: NatsConnection;
let bus: JetStreamBus;
let close: () => Promise<void>;

beforeAll(async () => {
  server = await startBusUnderTest();
  ({ nc: connection, jetstream: bus, close } = await server.connect());
  await bus.ensureStreams({ shards: [SYSTEM_SHARD] });
});
afterAll(async () => {
  await close();
  await server.stop();
});

/** Has room for all, of a lease that was settled by others before anything was committed: whether it counts is known when `say` says so. */
const settledQuota = () => {
  let say: (outcome: ConfirmOutcome) => void = () => {};
  const outcome = new Promise<ConfirmOutcome>((resolve) => {
    say = resolve;
  });
  let asked = 0;
  const quota: Quota = {
    reserve: (_, __, count) =>
      Promise.resolve({ outcome: 'reserved', reservation: { lease: 'ql-1' as never, count, error: null, committed: () => false, cancel: () => {} } }),
    confirm: () => {
      asked += 1;
      return outcome;
    },
  };
  return { quota, say, asked: () => asked };
};

const sendCreate = async (key: ClientKey, bodyHash: string): Promise<void> => {
  const now = systemClock.now();
  const data = { ...place, key, bodyHash, requestId: requestIdFor(PROJECT, key, SHARDS), deadlineAt: now + 60_000 };
  const id = `${PROJECT}:${key}:${bodyHash}`;
  const envelope = { v: 1, id, at: now, project: PROJECT, principal: 'test', correlationId: id, data } as unknown as CommandEnvelope;
  expect(await bus.commandQueue.enqueue(createLaneSubject(laneOf(PROJECT, LANES)), id, encode('command', envelope))).toMatchObject({ outcome: 'applied' });
};
const requestOf = async (key: ClientKey): Promise<RequestState | undefined> =>
  (await bus.eventLog.last(requestAddress(PROJECT, requestIdFor(PROJECT, key, SHARDS))))?.commit.state as RequestState | undefined;
const until = async (isSo: () => Promise<boolean> | boolean): Promise<void> => {
  while (!(await isSo())) await delay(20);
};

/** The same node, heard again and again, as long as the work takes. */
const withBeats = async (work: () => Promise<void>): Promise<void> => {
  let sequence = 0;
  const say = (): void => {
    sequence += 1;
    const beat = { ...beats.busy, at: systemClock.now(), sequence, used: NOTHING, labels: {}, layers: [], reservedFor: null };
    connection.publish(beatSubject(EDGE), JSON.stringify(beat));
  };
  const beating = setInterval(say, 100);
  await work().finally(() => clearInterval(beating));
};

test('a key that is used again with another body sends nothing of the first use, whose room in the quota is not known yet', async () => {
  const { quota, say, asked } = settledQuota();
  const said: string[] = [];
  const log = { ...createLog('test', 'silent'), info: (event: string) => void said.push(event) };
  const counts = { laneCount: LANES, shardCount: SHARDS };
  const placement = new Placement({ quota, connection, eventLog: bus.eventLog, queue: bus.commandQueue, clock: systemClock, log, ...counts });
  const key = 'twice' as ClientKey;
  const waiting = () => bus.commandQueue.waiting(edgeCommandSubject(EDGE, '_'), 0, 10);
  await placement.start();
  await withBeats(async () => {
    await sendCreate(key, 'one');
    await until(() => asked() === 1);
    await sendCreate(key, 'other');
    await until(() => said.includes('request.rejected'));
    await until(async () => (await bus.backlog.of('lane-0')).unacknowledged === 1); // the first still waits
    expect(await waiting()).toEqual([]);
    say({ outcome: 'exceeded', error: wireError('QUOTA_EXCEEDED', 'no room') });
    await until(async () => (await requestOf(key))?.items.every(({ error }) => error?.code === 'QUOTA_EXCEEDED') ?? false);
    await until(async () => (await bus.backlog.of('lane-0')).unacknowledged === 0);
    expect(await waiting()).toEqual([]);
  });
  await placement.close();
});
