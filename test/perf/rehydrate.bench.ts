/**
 * `rehydrate`: kill -9 of the Edge with 1,000 live sandboxes, time until every one answers an exec; the same again after
 * 1,000 more commits in each history.
 */
import type { SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import { connectBus } from '#runtime/bus/connect.ts';
import { createLog } from '#runtime/log/log.ts';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { inFlight, runBench, timed } from './harness.ts';

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

/**
 * Appends to every history what a sandbox that is given the same lives again and again would have in it. Written straight to
 * the log, as fast as it takes them; the Edge meets them when it starts.
 */
const lengthen = async (test: TestPlatform, boxes: readonly Sandbox[], commits: number): Promise<void> => {
  const { servers, keys } = test.platform.bus;
  const connection = await connectBus({ servers, credentials: keys.roles.operator }, 'bench', createLog('bench', 'error'));
  try {
    const { eventLog } = connectJetStream(connection);
    await inFlight(256, boxes.length, async (n) => {
      const newest = await eventLog.last(sandboxAddress(test.platform.config.project, boxes[n]!.id));
      if (!newest) throw new Error(`${boxes[n]!.id} has no commit`);
      let { sequence, commit } = newest;
      const { totalDeadlineAt, runningDeadlineAt, idleDeadlineAt, spec } = commit.state as unknown as SandboxState;
      const { runningMs, idleMs } = spec.lives;
      const event = { type: 'SandboxLivesExtended', at: commit.at, totalDeadlineAt, runningMs, runningDeadlineAt, idleMs, idleDeadlineAt };
      for (let i = 0; i < commits; i += 1) {
        commit = { ...commit, version: commit.version + 1, commandId: `bench:${n}:${commit.version}`, events: [event] };
        const outcome = await eventLog.append({ address: newest.address, commit, expectedSequence: sequence, messageId: `bench:${n}:${commit.version}` });
        if (outcome.outcome !== 'applied') throw new Error(`append: ${outcome.error.code}`);
        sequence = outcome.sequence;
      }
    });
  } finally {
    await connection.close();
  }
};

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
    await lengthen(test, boxes, SHORT_HISTORY);
    const seconds = await killAndAskAll(test, boxes);
    say(`short histories: ${seconds.toFixed(2)} s`);
    const growth = await timed(() => lengthen(test, boxes, LONG_HISTORY));
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
