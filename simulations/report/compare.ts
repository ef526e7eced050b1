/**
 * The same burst under one policy after another, and under views of different age: where a herd forms, and where it does not. Half of
 * the nodes carry load from before, because on an even fleet a policy that does not look does well.
 */
import { BURST, burst } from '../scenarios/burst.ts';
import { linesChart } from './charts.ts';
import { policyOf } from './policies.ts';

/** Ten beats: within one, nobody sees anything of the burst, and how old views are does not matter. */
const WITHIN_MS = 10_000;
const VIEW_AGES_MS = [0, 1_000, 4_000] as const;

export type Comparison = {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly charts: ReadonlyMap<string, string>;
};

export const compare = (policies: readonly string[], seed: number, scale: number, say: (line: string) => void): Comparison => {
  const lines = new Map<string, number[]>();
  const rows: string[][] = [];
  for (const policy of policies) {
    const ratios: number[] = [];
    let faults = 0;
    for (const viewAgeMs of VIEW_AGES_MS) {
      const nodes = Math.max(8, Math.round(BURST.nodes * scale));
      const sandboxes = Math.round(BURST.sandboxes * scale);
      const result = burst({
        ...BURST,
        jobs: 16,
        perRequest: 2_000,
        withinMs: WITHIN_MS,
        seed,
        nodes,
        sandboxes,
        before: Math.round(sandboxes / 2),
        viewAgeMs,
        parts: policyOf(policy),
      });
      if (result.violation) throw new Error(`${policy}, views of ${viewAgeMs} ms: ${result.violation.message}`);
      ratios.push(result.maxOverMean);
      faults += result.lost + result.doubled;
      say(`${policy}, views of ${viewAgeMs} ms: fullest node ÷ mean ${result.maxOverMean.toFixed(2)}`);
    }
    lines.set(policy, ratios);
    rows.push([policy, ...ratios.map((ratio) => ratio.toFixed(2)), String(faults)]);
  }
  const settings = VIEW_AGES_MS.map((ms) => `${ms} ms`);
  const chart = linesChart('load of the fullest node ÷ mean after a burst', 'age of the view', settings, lines);
  return { head: ['policy', ...settings, 'lost or doubled'], rows, charts: new Map([['policies', chart]]) };
};
