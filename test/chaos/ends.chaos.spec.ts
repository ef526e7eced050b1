/** Stop and delete at any moment, in parallel and repeatedly: they always end, and what a sandbox held is free again. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type ClientKey, type EdgeName, type ProjectName, requestIdFor, sandboxIdFor } from '#bus/ids.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { type DsecClient, DsecError } from '#sdk/mod.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { makeBusyboxRoot, type TestPlatform } from '#test/helpers/platform.ts';
import { type Traces, tracesOf } from '#test/helpers/traces.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CAPACITY = 40;
const ROUNDS = 100;
const ROUNDS_AT_ONCE = 10;
const GONE_MS = 30_000;
/** What may be said of a sandbox that is ending, has ended, or was never made. */
const ENDED_CODES = ['SANDBOX_ENDED', 'SANDBOX_NOT_FOUND', 'INVALID_STATE'];

let host: TestPlatform;
let dsec: DsecClient;
let before: Traces;
let atRest: Traces;

givenPlatform({ overrides: { maxSandboxes: CAPACITY, diskMiB: 64 * CAPACITY } }, async (given) => {
  ({ host, dsec } = given);
  await (await dsec.runContainer({ image: 'small', memoryLimitMb: 16 })).delete();
  before = tracesOf(host);
  atRest = { ...before, launcherMounts: expect.toBeOneOf([0, 1, 2, 3]) }; // the launcher's empty directory, and images, the broken one too, for a while after their last use
});

/** The sandbox that a create under this key will be: known before it is made, so that it can be ended while it is. */
const idOf = (key: string): string => {
  const requestId = requestIdFor('default' as ProjectName, key as ClientKey, 1);
  return sandboxIdFor(requestId, 0, 0, 'node-1' as EdgeName);
};
const settled = async (work: Promise<unknown>): Promise<DsecError | undefined> => {
  try {
    await work;
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof DsecError)) throw thrown;
    return thrown;
  }
};
const expectEnded = (error: DsecError | undefined): void => {
  if (error) expect(ENDED_CODES, error.message).toContain(error.code);
};

/** Several rounds at a time. */
const inRounds = async (count: number, width: number, work: (round: number) => Promise<void>): Promise<void> => {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await work(next++);
    }),
  );
};

test('three deletes at once at a random moment of a create, then one more, then a stop', async () => {
  await inRounds(ROUNDS, ROUNDS_AT_ONCE, async (round) => {
    const key = `round-${round}`;
    const sandbox = dsec.sandbox(idOf(key));
    const create = settled(dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: round % 2 ? 32 : undefined, key }, { timeoutMs: GONE_MS }));
    await delay(Math.random() * (round % 4 === 0 ? 1_000 : 120));
    const deletes = await Promise.all([1, 2, 3].map(() => settled(sandbox.delete({ timeoutMs: GONE_MS }))));
    for (const error of deletes) expectEnded(error);
    expectEnded(await settled(sandbox.delete({ timeoutMs: GONE_MS })));
    expectEnded(await settled(sandbox.stop({ timeoutMs: GONE_MS })));
    expectEnded(await create);
    expect(['EXPIRED', ...ENDED_CODES]).toContain((await settled(sandbox.exec(['true'])))?.code);
    const state = await sandbox.refresh();
    expect([state.status, state.forget]).toEqual(['stopped', true]);
  });
  await expect.poll(() => tracesOf(host), { timeout: GONE_MS }).toEqual(atRest);
}, 180_000);

describe(`a node with room for ${CAPACITY}`, () => {
  const createMany = async (count: number, tag: string) => {
    const outcomes = await Promise.all(
      Array.from({ length: count }, (_, n) =>
        dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 16, labels: { tag }, key: `${tag}-${n}` }, { timeoutMs: 60_000 }).then(
          (sandbox) => ({ sandbox }),
          (error: DsecError) => ({ error }),
        ),
      ),
    );
    const made = outcomes.flatMap((o) => ('sandbox' in o ? [o.sandbox] : []));
    const refused = outcomes.flatMap((o) => ('error' in o ? [o.error] : []));
    return { made, refused };
  };

  test('of 50 creates exactly 40 get it, ten are told typed; after the deletes all of it is free, three times over', async () => {
    for (let time = 0; time < 3; time += 1) {
      const { made, refused } = await createMany(CAPACITY + 10, `full-${time}`);
      expect(refused.map(({ code, fault }) => `${code} ${fault}`)).toEqual(Array.from({ length: 10 }, () => 'NO_CAPACITY infra'));
      expect(made).toHaveLength(CAPACITY);
      for (const error of refused) expect([error.outcome, error.retry]).toEqual(['not_applied', 'later']);
      await Promise.all(made.map((sandbox) => sandbox.delete()));
      const again = await createMany(CAPACITY, `again-${time}`);
      expect([again.made.length, again.refused]).toEqual([CAPACITY, []]);
      await Promise.all(again.made.map((sandbox) => sandbox.delete()));
    }
    await expect.poll(() => tracesOf(host), { timeout: GONE_MS }).toEqual(atRest);
  }, 180_000);

  test('what cannot start ends as failed with a reason, and holds nothing', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dsec-broken-'));
    makeBusyboxRoot(dir);
    rmSync(join(dir, 'proc'), { recursive: true });
    writeFileSync(join(dir, 'proc'), 'in the way of /proc');
    await buildLayer(host.store, { name: 'broken', kind: 'base', source: { type: 'directory', path: dir } });
    rmSync(dir, { recursive: true });
    // more than the node holds in all, fewer than that at a time
    await inRounds(2 * CAPACITY, CAPACITY / 2, async (n) => {
      const error = await settled(dsec.runContainer({ image: 'broken', memoryLimitMb: 16, diskLimitMb: 16, key: `broken-${n}` }));
      expect([error?.code, error?.fault], error?.message).toEqual(['START_FAILED', 'environment']);
    });
    const state = await dsec.sandbox(idOf('broken-0')).refresh();
    expect([state.status, state.failure?.code]).toEqual(['failed', 'START_FAILED']);
    expect((await dsec.sandbox(idOf('broken-0')).delete())?.forget).toBe(true);
    expect(await settled(dsec.runContainer({ image: 'small', key: 'broken-0' }))).toMatchObject({ code: 'KEY_CONFLICT' });
    const { made, refused } = await createMany(CAPACITY, 'after-broken');
    expect([made.length, refused]).toEqual([CAPACITY, []]);
    await Promise.all(made.map((sandbox) => sandbox.stop()));
    await expect.poll(() => tracesOf(host), { timeout: GONE_MS }).toEqual(atRest);
  });
});
