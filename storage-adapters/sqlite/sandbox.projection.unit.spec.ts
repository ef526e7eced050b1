import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ProjectName, SandboxId, Shard } from '#bus/ids.ts';
import type { SandboxStatus } from '#bus/sandbox/state.ts';
import { aCommit, anAddress } from '#test/helpers/commits.ts';
import { aSandboxCommit, type SandboxPart, sandboxId } from '#test/helpers/sandboxes.ts';
import { PROJECTION_LIMITS } from './limits.ts';
import { type ProjectionEntry, SandboxProjection } from './sandbox.projection.ts';

const SHARD = '0' as Shard;
const ALPHA = 'alpha' as ProjectName;
const NOW = 1_700_000_000_000;
const STREAM = { lastSequence: 1_000_000, createdAt: '2026-01-01T00:00:00Z' };

const overwrite = (file: string, from: number, bytes: number): void => {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, Buffer.alloc(bytes, 0xff), 0, bytes, from);
  closeSync(descriptor);
};

describe('SandboxProjection', () => {
  let directory: string;
  let path: string;
  let projection: SandboxProjection;
  let sequence: number;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dsec-projection-'));
    path = join(directory, 'sandboxes.sqlite');
    projection = SandboxProjection.open(path);
    projection.begin(SHARD, STREAM, NOW);
    sequence = 0;
  });
  afterEach(async () => {
    projection.close();
    await rm(directory, { recursive: true, force: true });
  });

  const commit = (n: number, version: number, part: SandboxPart = {}): ProjectionEntry => {
    sequence += 1;
    return { kind: 'commit', stored: aSandboxCommit(n, version, sequence, part) };
  };
  const apply = (...entries: ProjectionEntry[]) => projection.apply(SHARD, entries, NOW);
  type Query = {
    labels?: Record<string, string>;
    statuses?: SandboxStatus[];
    changedAfter?: Record<string, number>;
    after?: string;
    limit?: number;
    project?: string;
  };
  const list = (part: Query = {}) =>
    projection.list({
      project: (part.project ?? 'alpha') as ProjectName,
      labels: part.labels ?? {},
      statuses: part.statuses ?? [],
      changedAfter: part.changedAfter ?? {},
      after: part.after,
      limit: part.limit ?? 100,
    });
  const ids = (page: { sandboxes: readonly { state: { id: string } }[] }): string[] => page.sandboxes.map(({ state }) => state.id);
  const reopen = (bounds = STREAM, nowMs = NOW): number => {
    projection.close();
    projection = SandboxProjection.open(path);
    return projection.begin(SHARD, bounds, nowMs);
  };

  describe('folding', () => {
    test('a row is the newest state of a sandbox, with its version and place in the stream', () => {
      apply(commit(1, 1, { status: 'admitted' }), commit(2, 1), commit(1, 2, { status: 'running' }));
      expect(projection.get(ALPHA, sandboxId(1))).toMatchObject({ version: 2, streamSequence: 3, state: { status: 'running', id: sandboxId(1) } });
      expect(projection.get(ALPHA, sandboxId(9))).toBeNull();
      expect(projection.get('beta' as ProjectName, sandboxId(1))).toBeNull();
      expect(projection.asOf()).toEqual({ 0: 3 });
    });

    test('what is folded already is passed over', () => {
      const entries = [commit(1, 1, { status: 'admitted' }), commit(1, 2, { status: 'running' })];
      apply(...entries);
      const before = list();
      apply(...entries);
      apply(...entries.slice(0, 1));
      expect(list()).toEqual(before);
    });

    test('ended sandboxes stay, forgotten ones go with their labels', () => {
      apply(commit(1, 1, { labels: { suite: 'a' } }), commit(1, 2, { status: 'stopped', labels: { suite: 'a' } }), commit(2, 1, { labels: { suite: 'a' } }));
      expect(ids(list({ statuses: ['stopped'] }))).toEqual([sandboxId(1)]);
      sequence += 1;
      apply({ kind: 'forgotten', address: aSandboxCommit(1, 1, 1).address, sequence });
      expect(projection.get(ALPHA, sandboxId(1))).toBeNull();
      expect(ids(list({ labels: { suite: 'a' } }))).toEqual([sandboxId(2)]);
      expect(projection.asOf()).toEqual({ 0: 4 });
    });

    test('commits of other kinds move the sequence on and leave no row', () => {
      const address = anAddress(SHARD, 'rq-x', { kind: 'request', home: '_' });
      apply({ kind: 'commit', stored: { address, sequence: 7, commit: aCommit(address, 1) } });
      expect(projection.asOf()).toEqual({ 0: 7 });
      expect(ids(list())).toEqual([]);
    });

    test('a state that is none is reported, keeps the former row and stops nobody', () => {
      apply(commit(1, 1));
      const broken = aSandboxCommit(1, 2, 2);
      const unreadable = apply({ kind: 'commit', stored: { ...broken, commit: { ...broken.commit, state: { status: 'happy' } } } });
      expect(unreadable.map(({ sequence: at }) => at)).toEqual([2]);
      expect(projection.get(ALPHA, sandboxId(1))?.version).toBe(1);
      expect(projection.asOf()).toEqual({ 0: 2 });
    });

    test('a batch is all or nothing', () => {
      apply(commit(1, 1));
      const bad = { kind: 'commit', stored: { ...aSandboxCommit(2, 1, 3), address: undefined } } as unknown as ProjectionEntry;
      expect(() => apply(commit(3, 1), bad)).toThrow();
      expect(projection.asOf()).toEqual({ 0: 1 });
      expect(ids(list())).toEqual([sandboxId(1)]);
    });
  });

  describe('list', () => {
    test('filters by project, by every label and by any of the statuses', () => {
      apply(
        commit(1, 1, { labels: { suite: 'a', lang: 'c' } }),
        commit(2, 1, { labels: { suite: 'a', lang: 'js' }, status: 'paused' }),
        commit(3, 1, { labels: { suite: 'b', lang: 'c' }, status: 'failed' }),
        commit(4, 1, { project: 'beta', labels: { suite: 'a' } }),
      );
      expect(ids(list())).toEqual([1, 2, 3].map((n) => sandboxId(n)));
      expect(ids(list({ labels: { suite: 'a' } }))).toEqual([1, 2].map((n) => sandboxId(n)));
      expect(ids(list({ labels: { suite: 'a', lang: 'c' } }))).toEqual([sandboxId(1)]);
      expect(ids(list({ labels: { lang: 'c' }, statuses: ['failed'] }))).toEqual([sandboxId(3)]);
      expect(ids(list({ statuses: ['paused', 'failed'] }))).toEqual([2, 3].map((n) => sandboxId(n)));
      expect(ids(list({ labels: { suite: 'none' } }))).toEqual([]);
      expect(ids(list({ project: 'beta' }))).toEqual([sandboxId(4)]);
    });

    test('gives what has changed since, and all of a shard that is not asked about', () => {
      apply(commit(1, 1), commit(2, 1, { labels: { suite: 'a' } }), commit(3, 1), commit(1, 2));
      expect(ids(list({ changedAfter: { [SHARD]: 2 } }))).toEqual([1, 3].map((n) => sandboxId(n)));
      expect(ids(list({ changedAfter: { [SHARD]: 1 }, labels: { suite: 'a' } }))).toEqual([sandboxId(2)]);
      expect(ids(list({ changedAfter: { [SHARD]: 4 } }))).toEqual([]);
      expect(ids(list({ changedAfter: { z: 4 } }))).toEqual([1, 2, 3].map((n) => sandboxId(n)));
    });

    test.each([{ labels: {} }, { labels: { suite: 'a' } }])('pages through everything in id order, with $labels', ({ labels }) => {
      apply(...Array.from({ length: 25 }, (_, i) => commit(24 - i, 1, { labels: { suite: 'a' } })));
      const seen: string[] = [];
      let after: string | null | undefined;
      do {
        const page = list({ labels, limit: 10, ...(after ? { after } : {}) });
        expect(page.asOf).toEqual({ 0: 25 });
        seen.push(...ids(page));
        after = page.next;
      } while (after);
      expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => sandboxId(n)));
    });

    test('values that look like SQL are values', () => {
      const nasty = `' OR 1=1 --`;
      apply(commit(1, 1, { labels: { suite: nasty } }));
      expect(ids(list({ labels: { suite: nasty } }))).toEqual([sandboxId(1)]);
      expect(ids(list({ labels: { suite: `' OR '1'='1` } }))).toEqual([]);
      expect(ids(list({ after: nasty }))).toEqual([sandboxId(1)]);
    });

    test('a label filter uses the index of labels', () => {
      const plan = new Database(path, { readonly: true })
        .prepare(
          'EXPLAIN QUERY PLAN SELECT s.state FROM labels AS l JOIN sandboxes AS s ON s.project = l.project AND s.id = l.id WHERE l.project = ? AND l.key = ? AND l.value = ? AND l.id > ? ORDER BY l.id LIMIT 10',
        )
        .all('p', 'k', 'v', 'i')
        .map((row) => (row as { detail: string }).detail)
        .join('; ');
      expect(plan).toMatch(/SEARCH l USING PRIMARY KEY.*SEARCH s USING INDEX/);
      expect(plan).not.toMatch(/SCAN|TEMP B-TREE/);
    });
  });

  describe('waitFor', () => {
    test('resolves when each shard is folded far enough', async () => {
      await projection.waitFor({}, 1);
      let done = false;
      const waiting = projection.waitFor({ 0: 2 }, 60_000).then(() => {
        done = true;
      });
      apply(commit(1, 1));
      await Promise.resolve();
      expect(done).toBe(false);
      apply(commit(1, 2));
      await waiting;
      await projection.waitFor({ 0: 1 }, 1);
    });

    test('says when it takes too long, and which shards exist', async () => {
      await expect(projection.waitFor({ 0: 5 }, 20)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED', outcome: 'not_applied' });
      await expect(projection.waitFor({ z: 5 }, 20)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });

    test('is told when the projection closes', async () => {
      const waiting = projection.waitFor({ 0: 5 }, 60_000);
      reopen();
      await expect(waiting).rejects.toMatchObject({ code: 'API_UNAVAILABLE' });
    });
  });

  describe('the file', () => {
    const fill = (): void => void apply(commit(1, 1, { labels: { suite: 'a' } }), commit(2, 1));

    test('is taken up where it stood', () => {
      fill();
      expect(reopen()).toBe(3);
      expect(ids(list())).toEqual([sandboxId(1), sandboxId(2)]);
    });

    test.each([
      ['belongs to another stream', { ...STREAM, createdAt: '2026-02-02T00:00:00Z' }, NOW],
      ['is ahead of the stream', { ...STREAM, lastSequence: 1 }, NOW],
      ['was not fed for longer than tombstones are sure to last', STREAM, NOW + PROJECTION_LIMITS.offlineMs + 1],
    ])('begins at the beginning when it %s', (_, bounds, nowMs) => {
      fill();
      expect(reopen(bounds, nowMs)).toBe(1);
      expect(ids(list())).toEqual([]);
      expect(ids(list({ labels: { suite: 'a' } }))).toEqual([]);
      expect(projection.asOf()).toEqual({ 0: 0 });
    });

    test('keeps the rows of other shards when one begins anew', () => {
      fill();
      const other = '1' as Shard;
      projection.begin(other, STREAM, NOW);
      projection.apply(other, [{ kind: 'commit', stored: aSandboxCommit(3, 1, 9, { shard: '1' }) }], NOW);
      projection.begin(other, { ...STREAM, createdAt: 'anew' }, NOW);
      expect(ids(list())).toEqual([sandboxId(1), sandboxId(2)]);
      expect(projection.asOf()).toEqual({ 0: 2, 1: 0 });
    });

    test('is built anew when it was deleted', async () => {
      fill();
      projection.close();
      await rm(path);
      projection = SandboxProjection.open(path);
      expect(projection.begin(SHARD, STREAM, NOW)).toBe(1);
      expect(existsSync(path)).toBe(true);
    });

    test.each([
      ['is no database', async (file: string) => writeFile(file, 'this is not a database, and long enough to have a header')],
      ['is cut', async (file: string) => truncate(file, 5_000)],
      ['has damaged pages', async (file: string) => overwrite(file, 4_096, 8_192)],
    ])('is built anew when it %s', async (_, damage) => {
      fill();
      projection.close();
      await damage(path);
      projection = SandboxProjection.open(path);
      expect(projection.begin(SHARD, STREAM, NOW)).toBe(1);
      apply(commit(5, 1));
      expect(ids(list())).toEqual([sandboxId(5)]);
    });

    test('is built anew when another version of the program wrote it', () => {
      fill();
      projection.close();
      const old = new Database(path);
      old.prepare('UPDATE about SET fingerprint = ?').run('older');
      old.close();
      projection = SandboxProjection.open(path);
      expect(projection.begin(SHARD, STREAM, NOW)).toBe(1);
      expect(projection.get(ALPHA, sandboxId(1) as SandboxId)).toBeNull();
    });
  });
});
