/**
 * `sim-burst`: 32,000 creates within a second on 160 nodes, four placements, views one second old; the worst of three seeds.
 * `npm run sim -- burst --compare` is the table against other policies.
 */
import { BURST, burst } from '#sim/scenarios/burst.ts';
import { runBench } from './harness.ts';

await runBench('sim-burst', { maxOverMean: '≤ 1.15', lost: '0', doubled: '0' }, async (say) => {
  const worst = { maxOverMean: 0, lost: 0, doubled: 0 };
  for (const seed of [1, 2, 3]) {
    const { maxOverMean, lost, doubled, violation } = burst({ ...BURST, seed });
    if (violation) throw violation;
    say(`seed ${seed}: fullest node ÷ mean ${maxOverMean.toFixed(3)}, ${lost} lost, ${doubled} doubled`);
    worst.maxOverMean = Math.max(worst.maxOverMean, maxOverMean);
    worst.lost += lost;
    worst.doubled += doubled;
  }
  return worst;
});
