/**
 * `sim-full`: the paper's whole unit in one process, twice; both runs must end with the same trace hash. `npm run bench -- sim-full
 * 0.1` runs a tenth of it. Profile with `node --cpu-prof build/sim.mjs full --scale 0.1`.
 */
import { FULL, full } from '#sim/scenarios/full.ts';
import { runBench } from './harness.ts';

const scale = Number(process.argv[2] ?? 1);
const size = { ...FULL, nodes: Math.max(2, Math.round(FULL.nodes * scale)), sandboxes: Math.round(FULL.sandboxes * scale) };

await runBench('sim-full', { seconds: '≤ 180', rssMib: '≤ 1024', sandboxesLive: '380000' }, async (say) => {
  let saidAt = performance.now();
  const startedAt = performance.now();
  const first = full({
    ...size,
    say: ({ nowMs }, { rows }) => {
      if (performance.now() - saidAt < 5_000) return;
      saidAt = performance.now();
      say(`${Math.round(nowMs / 1_000)} s virtual, ${rows.at(-1)?.live} live`);
    },
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  const rssMib = process.resourceUsage().maxRSS / 1_024;
  if (first.violation) throw first.violation;
  say(`${seconds.toFixed(0)} s, trace ${first.hash}; once more`);
  const second = full(size);
  if (second.hash !== first.hash) throw new Error(`the second run ended with trace ${second.hash}: npm run sim -- full --replay finds where they part`);
  return { seconds, rssMib, sandboxesLive: first.figures.peakLive, steps: first.steps };
});
