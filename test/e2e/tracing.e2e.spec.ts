/** One create and one exec, on a started platform: one tree of spans from the client's call to what the kernel is asked for. */
import { createServer, type Server } from 'node:http';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { trace, context } from '@opentelemetry/api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SpanLine } from '#runtime/tracing/file-exporter.ts';
import { startTracing, type Tracing } from '#runtime/tracing/start.ts';
import { connect, type DsecClient } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';

const EXPORTED_MS = 20_000;
const dir = mkdtempSync(join(tmpdir(), 'dsec-trace-'));
const file = join(dir, 'spans.jsonl');
/** A collector, as far as it matters here: it takes what is posted. */
const collected: { readonly path: string; readonly body: string }[] = [];
let collector: Server;
let host: TestPlatform;
let tracing: Tracing;
let dsec: DsecClient;

beforeAll(async () => {
  collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      collected.push({ path: request.url ?? '', body: Buffer.concat(chunks).toString('utf8') });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  host = await startTestPlatform({ overrides: { traces: { file, endpoint } } });
  tracing = await startTracing({ file }, 'test');
  dsec = await connect({ contextFile: host.platform.contextFile });
}, 120_000);
afterAll(async () => {
  await dsec?.close();
  await tracing?.close();
  trace.disable();
  context.disable();
  await host?.close();
  collector?.close();
  collector?.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
}, 60_000);

const spans = (): SpanLine[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SpanLine);

/** Names from the root to the span. */
const pathOf = (span: SpanLine, all: readonly SpanLine[]): string => {
  const parent = all.find(({ spanId }) => spanId === span.parentSpanId);
  return parent ? `${pathOf(parent, all)} > ${span.name}` : span.name;
};

const pathsFrom = (root: string): string[] => {
  const all = spans();
  const roots = new Set(all.filter(({ name, parentSpanId }) => name === root && parentSpanId === null).map(({ traceId }) => traceId));
  return all.filter(({ traceId }) => roots.has(traceId)).map((span) => pathOf(span, all));
};

test('a create is one tree from the call to the launcher', async () => {
  const box = await dsec.runContainer({ image: 'small' });
  expect(await box.exec(['echo', 'hello'])).toMatchObject({ exitCode: 0 });
  const launched = 'sdk.create > api.create > placement.place > edge.launch > effect.ensureLaunched > launcher.launch';
  await expect.poll(() => pathsFrom('sdk.create'), { timeout: EXPORTED_MS }).toContain(launched);
  await expect.poll(() => pathsFrom('sdk.exec'), { timeout: EXPORTED_MS }).toContain('sdk.exec > op.exec > chronus.start');
  const inOneTrace = () => spans().filter(({ traceId }) => traceId === spans().find(({ name }) => name === 'sdk.create')?.traceId);
  const orphans = () => inOneTrace().filter(({ parentSpanId }) => parentSpanId !== null && !inOneTrace().some(({ spanId }) => spanId === parentSpanId));
  await expect.poll(orphans, { timeout: EXPORTED_MS }).toEqual([]);
  expect(new Set(inOneTrace().map(({ service }) => service))).toEqual(new Set(['test', 'dsec-iam+apiserver+placement+watcher+jobs', 'dsec-edge']));
  await box.stop();
}, 60_000);

test('commits name the trace of the call that caused them', async () => {
  const box = await dsec.runContainer({ image: 'small' });
  const named = new Set<string | undefined>();
  for await (const commit of box.events()) named.add(commit.traceparent?.split('-')[1]);
  expect(named.size).toBe(1);
  const calls = () => spans().filter(({ name }) => name === 'sdk.create');
  await expect.poll(() => calls().map(({ traceId }) => traceId), { timeout: EXPORTED_MS }).toContain([...named][0]);
  await box.stop();
}, 60_000);

test('a collector gets the same spans', async () => {
  const names = () =>
    collected
      .filter(({ path }) => path === '/v1/traces')
      .map(({ body }) => body)
      .join('\n');
  await expect.poll(names, { timeout: EXPORTED_MS }).toContain('effect.ensureLaunched');
  expect(names()).toContain('dsec-edge');
});

test('a refused call says its code', async () => {
  await expect(dsec.runContainer({ image: 'nowhere' })).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND' });
  const refused = () => spans().filter(({ name, attributes }) => name === 'api.create' && attributes['dsec.code'] === 'IMAGE_NOT_FOUND').length;
  await expect.poll(refused, { timeout: EXPORTED_MS }).toBe(1);
});
