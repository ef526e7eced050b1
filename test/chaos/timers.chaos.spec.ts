/** Deadlines are data: they survive whoever holds the timer, end a sandbox once, and at once when their time passed meanwhile. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONTAINER_LIMITS } from '#runtime/backends/container/limits.ts';
import { connect, type DsecClient, type Sandbox, type SandboxState } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';

const LIFE_SECONDS = 6;
/** Whoever is later than this has not been ended by its Edge: the hard end comes that long after a life, whether there is an Edge or not. */
const HARD_END_MS = CONTAINER_LIMITS.hardLifeGraceMs;

let host: TestPlatform;
let dsec: DsecClient;

beforeAll(async () => {
  host = await startTestPlatform({ restartMaxMs: 100 });
  dsec = await connect({ contextFile: host.platform.contextFile });
});
afterAll(async () => {
  await dsec?.close();
  await host?.close();
});

/** One that is dead already, and not started again yet, is left alone. */
const killEdge = (): void => {
  try {
    process.kill(host.platform.pids().edge as number, 'SIGKILL');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown;
  }
};

/** Its history when it is over: the state in the end, and how often each event happened. */
const ending = async (sandbox: Sandbox): Promise<{ state: SandboxState; counts: Record<string, number> }> => {
  const counts: Record<string, number> = {};
  for await (const { state, events } of dsec.sandbox(sandbox.id).events({ follow: true })) {
    for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1;
    if (state['status'] === 'stopped' || state['status'] === 'failed') return { state: state as unknown as SandboxState, counts };
  }
  throw new Error('its history ends before it does');
};
const expectOnce = (counts: Record<string, number>): void =>
  expect([counts['SandboxStopping'], counts['SandboxStopped'], counts['SandboxFailed'] ?? 0]).toEqual([1, 1, 0]);

test('kills of the Edge in the middle of a life, close to its end and at its very end: it ends in time, once', async () => {
  const kills = [[1_000], [2_000, 4_000], [LIFE_SECONDS * 1_000 - 300], [LIFE_SECONDS * 1_000 - 20], [LIFE_SECONDS * 1_000 + 10]];
  const boxes = await Promise.all(kills.map(() => dsec.runContainer({ image: 'small', memoryLimitMb: 16, ttlTotal: LIFE_SECONDS })));
  const command = boxes[0]?.exec(['sleep', '60']);
  const startedAt = Date.now();
  for (const atMs of kills.flat().sort((a, b) => a - b)) {
    await delay(Math.max(0, startedAt + atMs - Date.now()));
    killEdge();
    await expect.poll(() => host.platform.pids().edge, { timeout: 10_000, interval: 20 }).toBeTypeOf('number');
  }
  for (const box of boxes) {
    const { state, counts } = await ending(box);
    expect([state.status, state.stopReason]).toEqual(['stopped', 'total_life']);
    expectOnce(counts);
    const lateMs = Number(state.endedAt) - state.totalDeadlineAt;
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(HARD_END_MS);
  }
  expect(await command).toMatchObject({ reason: 'expired', fault: 'policy' });
}, 60_000);

test('a platform that was down when a life ended ends it at once after its start, once; the others go on', async () => {
  const [short, long] = await Promise.all([
    dsec.runContainer({ image: 'small', memoryLimitMb: 16, ttlTotal: 3 }),
    dsec.runContainer({ image: 'small', memoryLimitMb: 16, ttlTotal: 600, ttlRunningStop: 60 }),
  ]);
  await long.runShell('echo kept > /w/x');
  for (const pid of Object.values(host.platform.pids())) process.kill(pid as number, 'SIGKILL'); // bus, roles and Edge, all at once
  await dsec.close();
  await host.restart(() => delay(4_000));
  dsec = await connect({ contextFile: host.platform.contextFile });
  const { state, counts } = await ending(short);
  expect([state.status, state.stopReason]).toEqual(['stopped', 'total_life']);
  expectOnce(counts);
  expect(Number(state.endedAt)).toBeLessThan(state.totalDeadlineAt + HARD_END_MS);
  const survivor = dsec.sandbox(long.id);
  expect((await survivor.exec(['cat', '/w/x'])).stdout).toBe('kept\n');
  const decision = await survivor.extend({ ttlTotal: 2 });
  expect((await ending(survivor)).state.stopReason).toBe('total_life');
  expect(Date.now()).toBeGreaterThanOrEqual(Number(decision.lives?.totalDeadlineAt));
}, 60_000);

test('kills between a create’s acceptance and its start, and under a delete: each is finished, with its effect once', async () => {
  for (let round = 0; round < 6; round += 1) {
    const create = dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 16, key: `half-${round}` });
    await delay(4 + round * 6);
    killEdge();
    const box = await create;
    const first = await box.runShell('echo made >> /w/once; cat /w/once');
    expect(first.stdout).toBe('made\n');
    const gone = box.delete();
    await delay(round * 4);
    killEdge();
    expect((await gone)?.status).toBe('stopped');
    const { counts } = await ending(box);
    expectOnce(counts);
    expect(counts['SandboxStarted']).toBe(1);
  }
}, 120_000);
