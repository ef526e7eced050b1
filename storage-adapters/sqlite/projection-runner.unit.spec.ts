import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ProjectName, Shard } from '#bus/ids.ts';
import { ManualClock, MemoryEventLog } from '#adapters/memory/mod.ts';
import { aSandboxCommit, type SandboxPart, sandboxId } from '#test/helpers/sandboxes.ts';
import { type ProjectionRunner, runProjection } from './projection-runner.ts';
import { SandboxProjection } from './sandbox.projection.ts';

const SHARDS = ['0', '1'] as Shard[];
const ALPHA = 'alpha' as ProjectName;
const PATIENCE = { timeout: 20_000, interval: 10 };

describe('runProjection', () => {
  let directory: string;
  let path: string;
  let clock: ManualClock;
  let log: MemoryEventLog;
  let projection: SandboxProjection;
  let runner: ProjectionRunner | undefined;
  let errors: unknown[];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dsec-projection-'));
    path = join(directory, 'sandboxes.sqlite');
    clock = new ManualClock(1_700_000_000_000);
    log = new MemoryEventLog({ shards: SHARDS, clock });
    projection = SandboxProjection.open(path);
    errors = [];
  });
  afterEach(async () => {
    await runner?.close();
    runner = undefined;
    projection.close();
    await rm(directory, { recursive: true, force: true });
  });

  const start = async (): Promise<void> => {
    runner = await runProjection({ projection, eventLog: log, shards: SHARDS, onError: (error) => void errors.push(error), clock });
  };
  const append = async (n: number, version: number, expectedSequence: number, part: SandboxPart = {}): Promise<number> => {
    const { address, commit } = aSandboxCommit(n, version, 0, part);
    const outcome = await log.append({ address, commit, expectedSequence, messageId: `alpha:${n}:${version}:${part.shard}` });
    if (outcome.outcome !== 'applied') throw new Error(JSON.stringify(outcome));
    return outcome.sequence;
  };
  const ids = (): string[] =>
    projection.list({ project: ALPHA, labels: {}, statuses: [], after: undefined, limit: 500 }).sandboxes.map(({ state }) => state.id);
  const current = async (): Promise<void> => {
    const atLeast: Record<string, number> = {};
    for (const shard of SHARDS) atLeast[shard] = (await log.bounds(shard)).lastSequence;
    await projection.waitFor(atLeast, PATIENCE.timeout);
  };

  test('folds what lies in every shard and what comes', async () => {
    const first = await append(1, 1, 0);
    await append(2, 1, 0, { shard: '1' });
    await start();
    await projection.waitFor(runner?.startedAt ?? {}, PATIENCE.timeout);
    expect(ids()).toEqual([sandboxId(1), sandboxId(2, '1')]);
    const second = await append(1, 2, first, { status: 'stopped' });
    await current();
    expect(projection.get(ALPHA, sandboxId(1))).toMatchObject({ version: 2, streamSequence: second, state: { status: 'stopped' } });
    await log.forget(aSandboxCommit(1, 2, 0).address, second, 60_000);
    await current();
    expect(ids()).toEqual([sandboxId(2, '1')]);
    expect(errors).toEqual([]);
  });

  test('goes on where the file stood, and from the beginning when the stream is another one', async () => {
    await append(1, 1, 0);
    await start();
    await current();
    await runner?.close();
    await append(2, 1, 0);
    await start();
    await current();
    expect(ids()).toEqual([sandboxId(1), sandboxId(2)]);
    await runner?.close();

    clock.advance(1_000);
    log = new MemoryEventLog({ shards: SHARDS, clock });
    await append(7, 1, 0);
    await start();
    await current();
    expect(ids()).toEqual([sandboxId(7)]);
  });

  test('what was received is folded when it closes', async () => {
    await start();
    await append(1, 1, 0);
    await vi.waitFor(() => expect(projection.asOf()).toEqual({ 0: 1, 1: 0 }), PATIENCE);
    await runner?.close();
    expect(ids()).toEqual([sandboxId(1)]);
  });

  test('a state that nobody can read is reported and the rest goes on', async () => {
    const { address, commit } = aSandboxCommit(1, 1, 0);
    await log.append({ address, commit: { ...commit, state: { status: 'happy' } }, expectedSequence: 0, messageId: 'alpha:bad' });
    await append(2, 1, 0);
    await start();
    await current();
    expect(ids()).toEqual([sandboxId(2)]);
    expect(errors).toMatchObject([{ code: 'MALFORMED_MESSAGE', message: expect.stringContaining(sandboxId(1)) }]);
  });

  test('a file that gets damaged while in use is built again by itself', async () => {
    for (let n = 0; n < 400; n += 1) await append(n, 1, 0);
    await start();
    await current();
    // Another connection's write makes the first one read its pages from the file again.
    const other = new Database(path);
    other.prepare('UPDATE about SET fingerprint = fingerprint').run();
    other.pragma('wal_checkpoint(TRUNCATE)');
    other.close();
    const descriptor = openSync(path, 'r+');
    const bytes = statSync(path).size - 16_384;
    writeSync(descriptor, Buffer.alloc(bytes, 0xff), 0, bytes, 16_384);
    closeSync(descriptor);
    await append(400, 1, 0);
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), PATIENCE);
    await vi.waitFor(async () => expect(projection.asOf()).toEqual({ 0: 401, 1: 0 }), PATIENCE);
    expect(ids()).toHaveLength(401);
    expect(errors).toMatchObject([{ code: expect.stringMatching(/^SQLITE_CORRUPT/) }]);
  });
});
