/** Forks that cannot be, or of which a part cannot: typed for the whole call or for each item, and nothing half-done. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { inside } from '#test/helpers/files.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

const SMALL = { image: 'small', memoryLimitMb: 16 } as const;
const SETTLE_MS = 15_000;

let host: TestPlatform;
let dsec: DsecClient;
let origin: Sandbox;
const open: DsecClient[] = [];

givenPlatform({ restartMaxMs: 100 }, async (given) => {
  ({ host, dsec } = given);
  origin = await dsec.runContainer({ ...SMALL, labels: { tree: 'one' } });
  await inside(origin, 'echo start > /w/state');
});
afterAll(async () => {
  for (const client of open) await client.close();
});

/** The bus of one machine is told of new projects and credentials a moment later. */
const soon = async (options: Parameters<typeof connect>[0]): Promise<DsecClient> => {
  for (const until = performance.now() + SETTLE_MS; ; await delay(50)) {
    try {
      const client = await connect(options);
      open.push(client);
      return client;
    } catch (thrown) {
      if (performance.now() > until) throw thrown;
    }
  }
};
const inTree = async (tree: string): Promise<number> => {
  let count = 0;
  for await (const _ of dsec.list({ labels: { tree } })) count += 1;
  return count;
};

describe('the whole call', () => {
  test('of one that nobody knows', async () => {
    const unknown = origin.id.replace(/[0-9a-f]{20}/, 'f'.repeat(20));
    expect((await refusal(dsec.sandbox(unknown).fork(2))).code).toBe('SANDBOX_NOT_FOUND');
  });

  test('of one that is stopped, and of one that failed, which says why', async () => {
    const stopped = await dsec.runContainer(SMALL);
    await stopped.stop();
    expect(await refusal(stopped.fork(2))).toMatchObject({ code: 'SANDBOX_ENDED', details: { status: 'stopped' } });
    const failed = await dsec.runContainer(SMALL);
    const { pid } = await failed.refresh();
    process.kill(pid as number, 'SIGKILL');
    await expect.poll(async () => (await failed.refresh()).status, { timeout: SETTLE_MS }).toBe('failed');
    expect(await refusal(failed.fork(2))).toMatchObject({ code: 'SANDBOX_ENDED', details: { status: 'failed' } });
  });

  test('of one that is stopping', async () => {
    const stopping = await dsec.runContainer(SMALL);
    await stopping.stop({ wait: false });
    expect(['INVALID_STATE', 'SANDBOX_ENDED']).toContain((await refusal(stopping.fork(2))).code);
  });

  test.each([
    ['no children', 0, {}],
    ['too many', 257, {}],
    ['another image', 1, { image: 'small' }],
    ['a field that is none', 1, { memory: 5 }],
    ['less memory than there can be', 1, { memoryLimitMb: 1 }],
  ])('%s', async (_, count, options) => {
    expect((await refusal(origin.fork(count, options as object))).code).toBe('INVALID_ARGUMENT');
  });

  test('under a key that names something else', async () => {
    await origin.fork(1, { key: 'taken' as never, labels: { tree: 'taken' } });
    for (const [count, options] of [
      [2, { labels: { tree: 'taken' } }],
      [1, { labels: { tree: 'other' } }],
    ] as const)
      expect((await refusal(origin.fork(count, { key: 'taken' as never, ...options }))).code).toBe('KEY_CONFLICT');
    expect(await inTree('other')).toBe(0);
  });

  test('of a member of a job that has ended; those made before are members too', async () => {
    const { id } = (await dsec.jobs.create('ending')).state;
    const member = await dsec.runContainer({ ...SMALL, job: id });
    const [fork] = (await member.fork(1)).sandboxes;
    expect((await fork?.refresh())?.spec.labels['dsec/job']).toBe(id);
    await dsec.jobs.stop(id);
    expect(['JOB_ENDED', 'SANDBOX_ENDED', 'INVALID_STATE']).toContain((await refusal(member.fork(1))).code);
  });

  test('by somebody who may not: making needs one right, reading what it has written another', async () => {
    await dsec.admin.createPrincipal('looker', 'agent');
    await dsec.admin.grant(`${dsec.project}/looker`, { role: 'viewer' });
    const { context } = await dsec.admin.issueCredential('looker');
    const looker = await soon(context);
    expect((await refusal(looker.sandbox(origin.id).fork(1))).code).toBe('FORBIDDEN');
    await dsec.admin.createPrincipal('maker', 'agent');
    await dsec.admin.grant(`${dsec.project}/maker`, { actions: ['sandbox.create', 'sandbox.read'] });
    const maker = await soon((await dsec.admin.issueCredential('maker')).context);
    const error = await refusal(maker.sandbox(origin.id).fork(1));
    expect([error.code, error.details['needed']]).toEqual(['FORBIDDEN', 'sandbox.control']);
    expect((await origin.refresh()).snapshots.filter(({ purpose }) => purpose === 'keep')).toEqual([]);
  });
});

test('a part of the children: what the quota leaves is made, the rest says why, and the same key gives the same', async () => {
  await dsec.admin.createProject('narrow', { sandboxes: 4 });
  const narrow = await soon({ contextFile: host.platform.contextFile, project: 'narrow' });
  const root = await narrow.runContainer(SMALL);
  const group = await root.fork(6, { key: 'six' as never });
  expect([group.sandboxes.length, group.failures.map(({ error }) => error.code)]).toEqual([3, Array.from({ length: 3 }, () => 'QUOTA_EXCEEDED')]);
  const again = await root.fork(6, { key: 'six' as never });
  expect(again.sandboxes.map(({ id }) => id)).toEqual(group.sandboxes.map(({ id }) => id));
  await group.stopAll();
});

describe('at the same time', () => {
  test('branches of one origin, each under a key of its own: all are made, from what it was', async () => {
    await inside(origin, 'dd if=/dev/urandom of=/w/large bs=1M count=30 2>/dev/null');
    const groups = await Promise.all(Array.from({ length: 5 }, (_, n) => origin.fork(2, { labels: { branch: String(n) } })));
    expect(groups.map(({ sandboxes }) => sandboxes.length)).toEqual([2, 2, 2, 2, 2]);
    expect(await inside(groups[4]?.sandboxes[1] as Sandbox, 'cat /w/state')).toBe('start\n');
    for (const group of groups) await group.stopAll();
  });

  test('the same call ten times: one set of children', async () => {
    const groups = await Promise.all(Array.from({ length: 10 }, () => origin.fork(3, { key: 'ten' as never, labels: { tree: 'ten' } })));
    expect(new Set(groups.map(({ sandboxes }) => sandboxes.map(({ id }) => id).join()))).toHaveLength(1);
    expect(await inTree('ten')).toBe(3);
    await groups[0]?.stopAll();
  });

  test('with a pause, a resume and a snapshot of the origin', async () => {
    const [group] = await Promise.all([
      origin.fork(2),
      origin.pause().catch(() => undefined),
      origin.snapshot({ snapshotId: 'beside' }).catch(() => undefined),
      origin.resume().catch(() => undefined),
    ]);
    expect(group.failures).toEqual([]);
    expect(await inside(group.sandboxes[0] as Sandbox, 'cat /w/state')).toBe('start\n');
    await group.stopAll();
  });

  test.each(['control', 'edge', 'bus'] as const)(
    'with the death of the process of %s, again and again: each child once',
    { timeout: 120_000 },
    async (role) => {
      const forking = origin.fork(4, { key: `killed-${role}` as never, labels: { tree: role }, timeoutMs: 100_000 });
      for (let n = 0; n < 3; n += 1) {
        await delay(Math.random() * 200);
        const pid = host.platform.pids()[role];
        if (pid === undefined) continue;
        process.kill(pid, 'SIGKILL');
        await expect.poll(() => host.platform.pids()[role] ?? pid, { timeout: 30_000 }).not.toBe(pid);
      }
      const group = await forking;
      expect([group.failures, group.sandboxes.length, await inTree(role)]).toEqual([[], 4, 4]);
      for (const child of group.sandboxes) {
        const { forkedFrom } = await child.refresh();
        expect([forkedFrom, await inside(child, 'cat /w/state')]).toEqual([origin.id, 'start\n']);
      }
      await group.stopAll();
    },
  );
});

test('an origin at rest is forked as it rests, and stays at rest', async () => {
  await origin.pause();
  const group = await origin.fork(2);
  expect((await origin.refresh()).status).toBe('paused');
  expect(await inside(group.sandboxes[1] as Sandbox, 'cat /w/state')).toBe('start\n');
  await group.stopAll();
});
