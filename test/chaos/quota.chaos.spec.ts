/** Quotas, and a job's share, while iam and placement are killed again and again: never above, and in the end everything is free again. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { ENDED_STATUSES, SANDBOX_STATUSES } from '#bus/sandbox/state.ts';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import { refusal } from '#test/helpers/refusal.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

const QUOTA = 40;
const CREATES = 50;
const KILLS = 4;
const SETTLE_MS = 60_000;
const LIVING = SANDBOX_STATUSES.filter((status) => !ENDED_STATUSES.has(status));

let host: TestPlatform;
let owner: DsecClient;
let dsec: DsecClient;

givenPlatform({ overrides: { memoryMiB: 8_192 }, restartMaxMs: 100 }, async (given) => {
  ({ host, dsec: owner } = given);
  await owner.admin.createProject('forty', { sandboxes: QUOTA });
  const inside = () => connect({ contextFile: host.platform.contextFile, project: 'forty', timeoutMs: 20_000 });
  // The bus of one machine hears of a new project a moment later.
  dsec = await vi.waitFor(inside, { timeout: SETTLE_MS, interval: 100 });
});
afterAll(async () => {
  await dsec?.close();
});

/** The process that plays iam, apiserver and placement. */
const killControl = (): void => {
  const { control } = host.platform.pids();
  try {
    if (control) process.kill(control, 'SIGKILL');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown; // it is just being started again
  }
};
const used = () => dsec.admin.getProject().then(({ used: now }) => now.sandboxes ?? 0);

/** 50 creates at once where there is room for 40, twice: what is refused is refused for want of room, and what has ended is free again. */
const race = async (client: DsecClient, more: object, usedNow: () => Promise<number>, whose: object): Promise<void> => {
  for (let round = 0; round < 2; round += 1) {
    const creates = Array.from({ length: CREATES }, (_, n) =>
      client.runContainer({ image: 'small', memoryLimitMb: 8, key: `r${round}-${n}`, ...more }, { timeoutMs: 150_000 }),
    );
    const settled = Promise.allSettled(creates);
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(150);
      killControl();
    }
    const results = await settled;
    const made = results.flatMap((one): Sandbox[] => (one.status === 'fulfilled' ? [one.value] : []));
    expect(made).toHaveLength(QUOTA);
    for (const one of results)
      if (one.status === 'rejected')
        expect(one.reason).toMatchObject({ code: 'QUOTA_EXCEEDED', details: { ...whose, key: 'sandboxes', limit: QUOTA, used: QUOTA } });
    expect(await usedNow()).toBe(QUOTA);
    killControl();
    await Promise.all(made.map((sandbox) => sandbox.delete({ timeoutMs: 60_000 })));
    await expect.poll(usedNow, { timeout: SETTLE_MS }).toBe(0);
  }
};

test(`${CREATES} creates at a quota of ${QUOTA}, iam and placement killed ${KILLS} times meanwhile`, () => race(dsec, {}, used, { project: 'forty' }));

test('a job cannot have a share above what its project has', async () => {
  const above = await refusal(dsec.jobs.create('above', { share: { sandboxes: QUOTA + 1 } }));
  expect(above).toMatchObject({ code: 'QUOTA_EXCEEDED', retry: 'never', details: { project: 'forty', key: 'sandboxes', asked: QUOTA + 1, limit: QUOTA } });
  expect((await dsec.jobs.create('all-of-it', { share: { sandboxes: QUOTA } })).state.spec.share.sandboxes).toBe(QUOTA);
});

test(`${CREATES} creates at a job's share of ${QUOTA}, in a project that has room for all, with the same kills`, async () => {
  const { state: job } = await owner.jobs.create('forty', { share: { sandboxes: QUOTA } });
  const living = async () => {
    let n = 0;
    for await (const _ of owner.list({ labels: { 'dsec/job': job.id }, status: LIVING })) n += 1;
    return n;
  };
  await race(owner, { job: job.id }, living, { job: job.id });
  const beside = await owner.runContainer({ image: 'small', memoryLimitMb: 8 }); // the share is the job's alone
  await beside.delete();
  await owner.jobs.stop(job.id);
  expect(await refusal(owner.runContainer({ image: 'small', job: job.id }))).toMatchObject({ code: 'JOB_ENDED' });
});

test('what a killed placement had borrowed and not spent is settled by its next life, before it ends', async () => {
  const inherited = (): number => (readFileSync(host.logFile, 'utf8').match(/"leases\.inherited"/g) ?? []).length;
  const before = inherited();
  for (let n = 0; inherited() === before; n += 1) {
    await dsec.admin.getProject(); // it runs again
    await owner.admin.setQuota('forty', { sandboxes: QUOTA });
    const sandbox = await dsec.runContainer({ image: 'small', memoryLimitMb: 8, key: `borrow-${n}` }, { timeoutMs: 60_000 });
    killControl(); // more was lent than the one, and it may just have been given back: then again
    await owner.admin.setQuota('forty', { sandboxes: 2 });
    const last = await dsec.runContainer({ image: 'small', memoryLimitMb: 8, key: `last-${n}` }, { timeoutMs: 60_000 });
    await Promise.all([sandbox.delete({ timeoutMs: 60_000 }), last.delete({ timeoutMs: 60_000 })]);
  }
}, 300_000);

test('grants and quota changes that were answered are there after each kill', async () => {
  for (let n = 0; n < 6; n += 1) {
    await owner.admin.createProject(`p${n}`, { sandboxes: n + 1 });
    killControl();
    await owner.admin.setQuota(`p${n}`, { sandboxes: n + 2 });
  }
  const limits = new Map<string, number | undefined>();
  for await (const { name, limits: own } of owner.admin.listProjects()) limits.set(name, own.sandboxes);
  for (let n = 0; n < 6; n += 1) expect(limits.get(`p${n}`)).toBe(n + 2);
});
