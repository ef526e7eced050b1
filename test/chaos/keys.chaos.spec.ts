/** One key, one sandbox: over lost answers and connections, after the bus has forgotten the message, after a restart of everything. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type DsecClient } from '#sdk/mod.ts';
import { errorOf } from '#test/helpers/edge-kills.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { startTcpProxy, type TcpProxy } from '#test/helpers/tcp-proxy.ts';
import { readFileSync } from 'node:fs';

const CALLERS = 20;
const WINDOW_MS = 1_000;

let host: TestPlatform;
let proxy: TcpProxy;
let direct: DsecClient;
let cut: DsecClient;

beforeAll(async () => {
  host = await startTestPlatform({ overrides: { busDuplicateWindowMs: WINDOW_MS } });
  const context = JSON.parse(readFileSync(host.platform.contextFile, 'utf8')) as {
    servers: string[];
    project: string;
    credentials: { nkeySeed: string };
    inboxPrefix?: string;
  };
  proxy = await startTcpProxy(Number(new URL(`nats://${(context.servers[0] ?? '').replace(/^.*:\/\//, '')}`).port));
  direct = await connect({ contextFile: host.platform.contextFile });
  cut = await connect({ ...context, servers: [proxy.url] });
});
afterAll(async () => {
  await Promise.all([direct?.close(), cut?.close()]);
  await proxy?.close();
  await host?.close();
});

const idsOf = async (dsec: DsecClient): Promise<string[]> => {
  const ids: string[] = [];
  for await (const sandbox of dsec.list()) ids.push(sandbox.id);
  return ids;
};

test(`${CALLERS} creates under one key, the answers of half of them lost: one sandbox, known for ever after`, async () => {
  const options = { image: 'small', memoryLimitMb: 16, key: 'order-66' };
  // what is sent arrives, what is answered does not, and then the connection is gone
  proxy.holdAnswers();
  const lost = Array.from({ length: CALLERS / 2 }, () => cut.runContainer(options));
  const answered = Array.from({ length: CALLERS / 2 }, () => direct.runContainer(options));
  await delay(30);
  proxy.cut();
  const made = await Promise.all([...lost, ...answered]);
  const id = made[0]?.id as string;
  expect(new Set(made.map((sandbox) => sandbox.id))).toEqual(new Set([id]));

  await delay(2.5 * WINDOW_MS); // the bus would store the same message again by now
  expect((await direct.runContainer(options)).id).toBe(id);
  const conflict = await errorOf(direct.runContainer({ ...options, memoryLimitMb: 32 }));
  expect([conflict?.code, conflict?.outcome]).toEqual(['KEY_CONFLICT', 'not_applied']);
  expect(await idsOf(direct)).toEqual([id]);

  await Promise.all([direct.close(), cut.close()]);
  await host.restart();
  direct = await connect({ contextFile: host.platform.contextFile });
  const late = await direct.runContainer(options);
  expect(late.id).toBe(id);
  expect((await errorOf(direct.runContainer({ ...options, memoryLimitMb: 32 })))?.code).toBe('KEY_CONFLICT');
  expect((await late.exec(['echo', 'alive'])).stdout).toBe('alive\n');
  expect(await idsOf(direct)).toEqual([id]);
});

test('a first attempt that failed for good gives every repetition the same error', async () => {
  const options = { image: 'small', key: 'too-much', memoryLimitMb: 100_000_000 };
  await expect(direct.runContainer(options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  const never = { image: 'small', key: 'no-room', memoryLimitMb: 4_000_000 };
  const errors = [await errorOf(direct.runContainer(never)), await errorOf(direct.runContainer(never))];
  expect(errors.map((error) => error?.code)).toEqual(['NO_CAPACITY', 'NO_CAPACITY']);
});
