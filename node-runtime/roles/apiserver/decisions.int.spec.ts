/** Decisions of Edges come back to whoever waits for them, on a real bus; the Edge is played by the test. */
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CommandEnvelope } from '#bus/envelope.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import { startNatsServer, type TestNatsServer } from '#test/helpers/nats-server.ts';
import { Decisions } from './decisions.ts';

let server: TestNatsServer;
let connection: NatsConnection;

beforeAll(async () => {
  server = await startNatsServer();
  connection = await connect({ servers: server.url });
});
afterAll(async () => {
  await connection?.close();
  await server?.stop();
});

/** Takes a command once, as the queue does, and, unless it is mute, answers the first who stored it. */
const edge = ({ mute = false } = {}): { readonly queue: CommandQueue; readonly stored: () => number } => {
  const ids = new Set<string>();
  const enqueue: CommandQueue['enqueue'] = async (_, id, bytes) => {
    const duplicate = ids.has(id);
    ids.add(id);
    const { replyTo } = JSON.parse(new TextDecoder().decode(bytes)) as CommandEnvelope;
    const result = { ok: true, data: { decision: 'accepted', version: 7 } };
    if (!duplicate && !mute) setTimeout(() => connection.publish(replyTo as string, JSON.stringify({ commandId: id, at: 1, result })), 50);
    return { outcome: 'applied', sequence: ids.size, duplicate };
  };
  return { queue: { enqueue } as Partial<CommandQueue> as CommandQueue, stored: () => ids.size };
};

const command = (id: string): CommandEnvelope =>
  ({
    v: 1,
    id,
    at: 1,
    project: 'alpha',
    principal: 'somebody',
    correlationId: id,
    deadlineAt: 2,
    data: { type: 'PauseSandbox' },
  }) as unknown as CommandEnvelope;

test('who asks the same at the same time gets the same decision, and the node is asked once', async () => {
  const { queue, stored } = edge();
  const decisions = new Decisions(connection, queue, () => {});
  const answers = await Promise.all(Array.from({ length: 5 }, () => decisions.decide('cmd', command('alpha:same'))));
  expect(answers).toEqual(Array.from({ length: 5 }, () => expect.objectContaining({ decision: 'accepted', version: 7 })));
  expect(stored()).toBe(1);
  decisions.close();
});

test('a node that does not answer is said to have not', async () => {
  const { queue } = edge({ mute: true });
  const decisions = new Decisions(connection, queue, () => {});
  expect(await decisions.decide('cmd', command('alpha:mute'), 1)).toMatchObject({ decision: 'pending' });
  decisions.close();
});
