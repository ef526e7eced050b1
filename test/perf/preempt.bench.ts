/**
 * `preempt`: a trainer with 1,000 live rollouts is killed with SIGKILL; time from the start of the next one to its first turn and to
 * all turns that are open, with 10 and with 500 turns of history in each rollout. The model is nobody: turns are only received.
 */
import { join } from 'node:path';
import type { RolloutState } from '#bus/rollout/schema.ts';
import { rolloutAddress } from '#bus/subjects.ts';
import { connect } from '#sdk/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { runBench, timed } from './harness.ts';
import { lengthen } from './lengthen.ts';
import { TrainerChild } from '#infra/demo/training/trainer-child.ts';

const ROLLOUTS = Number(process.env['DSEC_BENCH_ROLLOUTS'] ?? 1_000);
const SHORT_TURNS = 10;
const LONG_TURNS = 500;
/** Asked, answered, delivered. */
const COMMITS_PER_TURN = 3;
/** Longer than any run: no turn is answered. */
const THINK_MS = 3_600_000;
const STOP_MS = 900_000;

/** Asks one turn and waits for ever. */
const WORKER = `read -r start; echo '{"type":"turn","request":{"n":0}}'; read -r answer`;

type Attached = { readonly firstSeconds: number; readonly allSeconds: number; readonly child: TrainerChild };

const attach = async (program: string, test: TestPlatform, jobId: string): Promise<Attached> => {
  const startedAt = performance.now();
  let firstSeconds = Number.NaN;
  const seen = new Set<string>();
  let all: (seconds: number) => void = () => {};
  let failed: (error: Error) => void = () => {};
  const whenAll = new Promise<number>((resolve, reject) => {
    all = resolve;
    failed = reject;
  });
  const child = new TrainerChild(program, [test.platform.contextFile, jobId, `${test.dir}/policy.json`, `${THINK_MS}`], ({ event, rolloutId }) => {
    if (event !== 'turn' || !rolloutId) return;
    if (seen.size === 0) firstSeconds = (performance.now() - startedAt) / 1_000;
    seen.add(rolloutId);
    if (seen.size === ROLLOUTS) all((performance.now() - startedAt) / 1_000);
  });
  void child.exited().then(() => failed(new Error(`the trainer ended: ${child.complaint}`)));
  return { allSeconds: await whenAll, firstSeconds, child };
};

/** What so many turns leave behind. */
const lengthenBy = (test: TestPlatform, ids: readonly string[], turns: number): Promise<void> =>
  lengthen(
    test,
    ids.map((id) => rolloutAddress(test.platform.config.project, id as RolloutState['id'])),
    turns * COMMITS_PER_TURN,
    ({ at, state }) => ({ type: 'StepsRecorded', at, steps: [], served: (state as unknown as RolloutState).served }),
  );

await runBench('preempt', { seconds10Turns: '≤ 2', seconds500Turns: '≤ 2, as with 10' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  const children: TrainerChild[] = [];
  try {
    const program = join(projectRoot(), 'build/demo-trainer.mjs');
    await using dsec = await connect({ contextFile: test.platform.contextFile });
    const { state: job } = await dsec.jobs.create('preempt', { leaseMs: 60_000, onOwnerLost: 'keep' });
    const spec = { worker: { sandbox: { image: 'small', limits: { memoryMiB: 32, pids: 16 } }, program: { argv: ['sh', '-c', WORKER] } } };
    const ids = await dsec.jobs.startRollouts(
      job.id,
      Array.from({ length: ROLLOUTS }, (_, i) => ({ key: `rollout-${i}`, spec })),
    );
    const first = await attach(program, test, job.id);
    children.push(first.child);
    say(`${ROLLOUTS} rollouts ask after ${first.allSeconds.toFixed(1)} s`);
    await first.child.kill();
    const again = async (turns: number): Promise<Attached> => {
      await lengthenBy(test, ids, turns);
      await dsec.jobs.get(job.id); // answered behind everything that the role has heard of meanwhile
      const attached = await attach(program, test, job.id);
      children.push(attached.child);
      say(`with ${turns} turns more in each history: first turn after ${attached.firstSeconds.toFixed(2)} s, all after ${attached.allSeconds.toFixed(2)} s`);
      await attached.child.kill();
      return attached;
    };
    const short = await again(SHORT_TURNS);
    const long = await again(LONG_TURNS - SHORT_TURNS);
    const stopping = await timed(() => dsec.jobs.stop(job.id, { timeoutMs: STOP_MS }));
    say(`${ROLLOUTS} rollouts ended in ${(stopping.ms / 1_000).toFixed(1)} s: ${JSON.stringify(stopping.value)}`);
    return {
      seconds10Turns: short.allSeconds,
      seconds500Turns: long.allSeconds,
      firstTurnSeconds10Turns: short.firstSeconds,
      firstTurnSeconds500Turns: long.firstSeconds,
    };
  } finally {
    for (const child of children) await child.kill();
    await test.close();
  }
});
