/** Malformed messages on every subject of the bus, by the thousand, while a platform serves: it answers, and harms nobody. */
import { connect as connectNats, nkeyAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { API, ApiAnswer } from '#bus/api/schema.ts';
import { ERRORS } from '#bus/errors.ts';
import { packOp, unpackOp } from '#bus/op/codec.ts';
import { OPS } from '#bus/op/schema.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

const MESSAGES = 40_000;
const IN_FLIGHT = 64;
let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;
let operator: NatsConnection;

givenPlatform({ logLevel: 'error' }, async (given) => {
  ({ host, dsec } = given);
  box = await dsec.runContainer({ image: 'small' });
  const { servers, keys } = host.platform.bus;
  operator = await connectNats({ servers: [...servers], authenticator: nkeyAuthenticator(new TextEncoder().encode(keys.roles.operator.nkeySeed)) });
});
afterAll(async () => {
  await operator?.close();
});

const junkBytes = fc.uint8Array({ maxLength: 300 });
const anyJson = fc.json({ maxDepth: 4 }).map((text) => new TextEncoder().encode(text));
/** Nearly right: a known shape with one field replaced by anything. */
const nearly = (known: Record<string, unknown>) =>
  fc
    .tuple(fc.constantFrom(...Object.keys(known), 'surplus'), fc.anything({ maxDepth: 2 }))
    .map(([field, value]) => JSON.stringify({ ...known, [field]: value }) ?? 'null');
const apiShapes: Record<string, unknown>[] = [
  { v: 1, key: 'fuzz', count: 1, spec: { image: 'no-such-image' }, timeoutMs: 1_000 },
  { v: 1, ids: [] },
  { v: 1, id: 'sb-0-00000000000000000000-node-1', totalMs: 5 },
  { v: 1, labels: {}, statuses: [], limit: 1 },
];
const apiMessage = fc.tuple(
  fc.constantFrom(...Object.keys(API), 'no-such-verb'),
  fc.oneof(
    junkBytes,
    anyJson,
    fc
      .constantFrom(...apiShapes)
      .chain(nearly)
      .map((text) => new TextEncoder().encode(text)),
  ),
);
const opMessage = fc.tuple(
  fc.constantFrom(...Object.keys(OPS), 'no-such-op'),
  fc.oneof(
    junkBytes,
    fc.tuple(anyJson, junkBytes).map(([json, body]) => packOp(JSON.parse(new TextDecoder().decode(json)), body)),
    nearly({ v: 1, execId: `ex-${'0'.repeat(24)}`, waitMs: 0, offset: 0, stream: 'stdout' }).map((text) => packOp(JSON.parse(text))),
  ),
);

const inBatches = async <T>(arbitrary: fc.Arbitrary<T>, count: number, send: (message: T) => Promise<void>) => {
  const messages = fc.sample(arbitrary, { numRuns: count, seed: 20_260_929 });
  for (let at = 0; at < messages.length; at += IN_FLIGHT) await Promise.all(messages.slice(at, at + IN_FLIGHT).map(send));
};

const stillServes = async () => {
  expect((await box.exec(['echo', 'fine'])).stdout).toBe('fine\n');
  const pids = host.platform.pids();
  expect(pids).toEqual(before);
};
let before: ReturnType<TestPlatform['platform']['pids']>;

test('the client’s subjects: every message is answered with a typed error or a right answer', async () => {
  before = host.platform.pids();
  const codes = new Map<string, number>();
  const count = (code: string) => codes.set(code, (codes.get(code) ?? 0) + 1);
  await inBatches(apiMessage, MESSAGES / 2, async ([verb, data]) => {
    const reply = await operator.request(`dsec.api.default.${verb}`, data, { timeout: 20_000 });
    const answer = ApiAnswer.parse(reply.json());
    count(answer.ok ? 'ok' : answer.error.code);
  });
  await inBatches(opMessage, MESSAGES / 2, async ([op, data]) => {
    const reply = await operator.request(`dsec.op.default.node-1.${box.id}.${op}`, data, { timeout: 30_000 });
    const { meta } = unpackOp(reply.data);
    const answer = ApiAnswer.parse(meta);
    count(answer.ok ? 'ok' : answer.error.code);
  });
  for (const code of codes.keys()) expect(['ok', ...Object.keys(ERRORS)]).toContain(code);
  expect(codes.get('INTERNAL') ?? 0).toBe(0);
  await stillServes();
}, 300_000);

test('the platform’s own subjects: commands and beats that nobody understands are dropped, commits are refused or ignored', async () => {
  const command = (data: unknown) => JSON.stringify({ v: 1, id: 'x', at: 1, project: 'default', correlationId: 'x', data });
  const commandBytes = fc.oneof(
    junkBytes,
    anyJson,
    nearly({ v: 1, id: 'x', at: 1, project: 'default', correlationId: 'x', data: { type: 'StopSandbox' } }).map((t) => new TextEncoder().encode(t)),
    fc.anything({ maxDepth: 3 }).map((v) => new TextEncoder().encode(command(v))),
  );
  const target = fc.constantFrom(
    'dsec.cmd.create.0',
    'dsec.cmd.edge.node-1._',
    `dsec.cmd.edge.node-1.sb-0-${'a'.repeat(20)}-node-1`,
    'dsec.cmd.edge.node-1.no-id',
    'dsec.beat.node-1',
    'dsec.beat.ghost',
    'dsec.out.0.default.sandbox.node-1.ghost',
    `dsec.ev.0.default.sandbox.node-1.sb-0-${'b'.repeat(20)}-node-1`,
    'dsec.ev.0.default.sandbox.node-1.ghost',
    `dsec.ev.0.default.request._.rq-0-${'c'.repeat(32)}`,
  );
  await inBatches(fc.tuple(target, commandBytes), MESSAGES / 4, async ([subject, data]) => {
    operator.publish(subject, data);
  });
  await operator.flush();
  await using fresh = await dsec.runContainer({ image: 'small' });
  expect((await fresh.exec(['true'])).ok).toBe(true);
  await stillServes();
  const killed = before.edge as number; // a new Edge reads all of it from the log
  process.kill(killed, 'SIGKILL');
  await expect.poll(() => host.platform.pids().edge, { timeout: 30_000 }).not.toBe(killed);
  expect((await box.exec(['echo', 'fine'])).stdout).toBe('fine\n');
}, 300_000);
