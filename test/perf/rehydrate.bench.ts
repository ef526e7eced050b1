/**
 * `rehydrate`: kill -9 of the Edge with 1,000 live sandboxes, time until every one answers an exec; the same again after
 * 1,000 more commits in each history.
 */
import type { SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { inFlight, runBench, timed } from './harness.ts';
import { lengthen } from './lengthen.ts';

const SANDBOXES = 1_000;
const SHORT_HISTORY = 10;
const LONG_HISTORY = 1_000;

const killAndAskAll = async (test: TestPlatform, boxes: readonly Sandbox[]): Promise<number> => {
  const before = test.platform.pids().edge;
  if (before === undefined) throw new Error('no Edge');
  process.kill(before, 'SIGKILL');
  const { ms } = await timed(() =>
    inFlight(256, boxes.length, async (i) => {
      const { exitCode } = await boxes[i]!.exec(['/bin/true']);
      if (exitCode !== 0) throw new Error(`exit ${exitCode}`);
    }),
  );
  if (test.platform.pids().edge === before) throw new Error('the Edge was not replaced');
  return ms / 1_000;
};

/** What sandboxes that are given the same lives again and again would have in their histories; the Edge meets it when it starts. */
const lengthenBy = (test: TestPlatform, boxes: readonly Sandbox[], commits: number): Promise<void> =>
  lengthen(
    test,
    boxes.map(({ id }) => sandboxAddress(test.platform.config.project, id)),
    commits,
    ({ at, state }) => {
      const { totalDeadlineAt, runningDeadlineAt, idleDeadlineAt, spec } = state as unknown as SandboxState;
      const { runningMs, idleMs } = spec.lives;
      return { type: 'SandboxLivesExtended', at, totalDeadlineAt, runningMs, runningDeadlineAt, idleMs, idleDeadlineAt };
    },
  );

await runBench('rehydrate', { seconds: '≤ 3', secondsLongHistory: '≤ 1.3 × seconds' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    const created = await timed(() =>
      dsec.runContainers({ image: 'small', memoryLimitMb: 64, pidsLimit: 32, ttlTotal: 7_200 }, { count: SANDBOXES, timeoutMs: 300_000 }),
    );
    const boxes = created.value.sandboxes;
    if (boxes.length !== SANDBOXES) throw new Error(`${boxes.length} of ${SANDBOXES} run`);
    say(`${SANDBOXES} created in ${(created.ms / 1_000).toFixed(1)} s`);
    await lengthenBy(test, boxes, SHORT_HISTORY);
    const seconds = await killAndAskAll(test, boxes);
    say(`short histories: ${seconds.toFixed(2)} s`);
    const growth = await timed(() => lengthenBy(test, boxes, LONG_HISTORY));
    say(`${SANDBOXES * LONG_HISTORY} commits more in ${(growth.ms / 1_000).toFixed(0)} s`);
    const secondsLongHistory = await killAndAskAll(test, boxes);
    say(`long histories: ${secondsLongHistory.toFixed(2)} s`);
    await created.value.stopAll();
    await dsec.close();
    return { seconds, secondsLongHistory, longVsShort: secondsLongHistory / seconds, createSeconds: created.ms / 1_000 };
  } finally {
    await test.close();
  }
});
