/** The projection against a real bus, its process killed in the middle of its work, again and again. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ProjectName, Shard } from '#bus/ids.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { bundled } from '#test/helpers/bundled.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { aSandboxCommit, sandboxId } from '#test/helpers/sandboxes.ts';
import { runProjection } from './projection-runner.ts';
import { SandboxProjection } from './sandbox.projection.ts';

const SHARD = '0' as Shard;
const ALPHA = 'alpha' as ProjectName;
const SANDBOXES = 400;
const COMMITS_EACH = 12;
const KILLS = 8;

let bus: BusUnderTest;
let directory: string;
let program: string;
beforeAll(async () => {
  bus = await startBusUnderTest();
  directory = await mkdtemp(join(tmpdir(), 'dsec-projection-'));
  program = await bundled('test/helpers/projection-child.ts');
});
afterAll(async () => {
  await bus.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Every sandbox gets its commits; every tenth is forgotten at the end. Answers how many messages that made. */
const fill = async (log: EventLog): Promise<number> => {
  await Promise.all(
    Array.from({ length: SANDBOXES }, async (_, n) => {
      let sequence = 0;
      for (let version = 1; version <= COMMITS_EACH; version += 1) {
        const { address, commit } = aSandboxCommit(n, version, 0, { labels: { tenth: String(n % 10) } });
        const outcome = await log.append({ address, commit, expectedSequence: sequence, messageId: `alpha:${n}:${version}` });
        if (outcome.outcome !== 'applied') throw new Error(JSON.stringify(outcome));
        sequence = outcome.sequence;
      }
      if (n % 10 === 0) await log.forget(aSandboxCommit(n, 1, 0).address, sequence, 3_600_000);
    }),
  );
  return SANDBOXES * COMMITS_EACH + SANDBOXES / 10;
};

/** Feeds the file in a process of its own and kills it right after it has begun its n-th transaction. */
const feedAndKill = async (path: string, afterBegins: number): Promise<void> => {
  const child = spawn(process.execPath, [program, bus.serverUrl, SHARD, path], { stdio: ['ignore', 'pipe', 'pipe'] });
  let begun = 0;
  let complaints = '';
  child.stderr.on('data', (bytes: Buffer) => {
    complaints += bytes.toString();
  });
  child.stdout.on('data', (bytes: Buffer) => {
    begun += bytes.toString().split('begins').length - 1;
    if (begun >= afterBegins) child.kill('SIGKILL');
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error(`the child ended by itself with ${code ?? signal}: ${complaints}`);
};

test('after any number of kills in the middle of a transaction the rows are exact', { timeout: 120_000 }, async () => {
  const path = join(directory, 'sandboxes.sqlite');
  const { jetstream, close } = await bus.connect();
  await jetstream.ensureStreams({ shards: [SHARD] });
  const messages = await fill(jetstream.eventLog);
  // In the first transaction or the second, by turns: there is progress, and the log is not at its end before the last kill.
  for (let kill = 0; kill < KILLS; kill += 1) await feedAndKill(path, 1 + (kill % 2));
  expect(existsSync(`${path}-wal`)).toBe(true); // killed, not closed

  const projection = SandboxProjection.open(path);
  const before = projection.asOf()[SHARD] ?? 0;
  expect(before).toBeGreaterThan(0);
  const errors: unknown[] = [];
  const runner = await runProjection({ projection, eventLog: jetstream.eventLog, shards: [SHARD], onError: (error) => void errors.push(error) });
  await projection.waitFor(runner.startedAt, 60_000);

  const rows = [];
  for (let after: string | undefined; ; ) {
    const page = projection.list({ project: ALPHA, labels: {}, statuses: [], after, limit: 500 });
    rows.push(...page.sandboxes.map(({ state, version }) => [state.id, version]));
    after = page.next ?? undefined;
    if (!after) break;
  }
  const living = Array.from({ length: SANDBOXES }, (_, n) => n).filter((n) => n % 10 !== 0);
  expect(rows).toEqual(living.map((n) => [sandboxId(n), COMMITS_EACH]));
  expect(projection.list({ project: ALPHA, labels: { tenth: '3' }, statuses: [], after: undefined, limit: 500 }).sandboxes).toHaveLength(SANDBOXES / 10);
  expect(projection.list({ project: ALPHA, labels: { tenth: '0' }, statuses: [], after: undefined, limit: 500 }).sandboxes).toEqual([]);
  expect(projection.asOf()).toEqual({ [SHARD]: messages });
  expect(errors).toEqual([]);
  await runner.close();
  projection.close();
  await close();
});
