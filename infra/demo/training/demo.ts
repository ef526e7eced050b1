/**
 * `npm run demo:training`: a small policy learns to repair a real library over real sandboxes, and is seen to. Exits 0 only when
 * it became better than chance by far.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { connect, type RolloutResult } from '#sdk/mod.ts';
import { main } from '../run-demo.ts';
import { startDemoPlatform } from '../platform.ts';
import { ensureTrainingImages } from './images.ts';
import { firstTurnShare, openPolicy, train } from './train.ts';
import { MAX_TURNS, repairRollout, TASK_COUNT } from './tasks.ts';

const ROUNDS = 6;
const ROLLOUTS_PER_BUG = 4;

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
const meanReward = (results: readonly RolloutResult[]): number => results.reduce((sum, r) => sum + (r.reward ?? 0), 0) / Math.max(1, results.length);

const printRounds = (rounds: readonly (readonly RolloutResult[])[]): void => {
  const table = new Table({ head: ['round', 'episodes', 'first try', 'repaired', 'mean reward', ''], style: { head: [], border: [] } });
  for (const [i, results] of rounds.entries()) {
    const solved = results.filter((r) => (r.result as { isSolved?: boolean } | null)?.isSolved).length;
    const share = firstTurnShare(results);
    table.push([i + 1, results.length, percent(share), `${solved}`, meanReward(results).toFixed(2), '█'.repeat(Math.round(share * 30))]);
  }
  process.stdout.write(`\n${table.toString()}\nchance at the first try: ${percent(1 / TASK_COUNT)}; at most ${MAX_TURNS} tries in an episode\n`);
};

await main(async ({ say, signal }) => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-training-'));
  const started = await startDemoPlatform({ dir, say, signal, images: ensureTrainingImages });
  try {
    await using dsec = await connect({ contextFile: started.platform.contextFile });
    const policyFile = join(dir, 'policy.json');
    const policy = openPolicy(policyFile);
    const rounds: RolloutResult[][] = [];
    say(`${ROUNDS} rounds of ${TASK_COUNT * ROLLOUTS_PER_BUG} episodes, each in sandboxes of its own: which of ${TASK_COUNT} repairs does a bug need?`);
    for (let round = 0; round < ROUNDS; round += 1) {
      signal.throwIfAborted();
      await using trainer = await dsec.openJob(`round-${round}`, { onOwnerLost: 'stop' });
      const bugs = Array.from({ length: TASK_COUNT * ROLLOUTS_PER_BUG }, (_, i) => i % TASK_COUNT);
      await trainer.start(bugs.map((bug, i) => repairRollout(started.images, bug, `bug-${bug}/${i}`)));
      const results: RolloutResult[] = [];
      await train({ trainer, policy, policyFile, onResult: (result) => results.push(result) });
      await trainer.stopJob();
      rounds.push(results);
      say(`round ${round + 1}: ${percent(firstTurnShare(results))} repaired at the first try, mean reward ${meanReward(results).toFixed(2)}`);
    }
    printRounds(rounds);
    const [first, last] = [rounds[0] ?? [], rounds.at(-1) ?? []];
    const problems = [];
    if (rounds.flat().some((r) => r.outcome !== 'finished')) problems.push('not every episode finished');
    if (firstTurnShare(last) < firstTurnShare(first) + 0.3) problems.push('the policy has not learnt');
    return problems;
  } finally {
    await started.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
