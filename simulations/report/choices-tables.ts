/**
 * Tables of the choices alone: policies against the age of views, and against the number of placements, as the mean over seeds with
 * the worst seed in brackets. The burst lasts ten beats, so that what beats say matters; half of the nodes carry load from before,
 * because on an even fleet a policy that does not look does well.
 */
import { CHOICES, type ChoicesOptions, choicesOf } from './choices.ts';
import { policyOf, POLICIES } from './policies.ts';

const LONG: ChoicesOptions = { ...CHOICES, jobs: 16, withinMs: 10_000, before: 16_000 };
const VIEW_AGES_MS = [100, 1_000, 5_000] as const;
const PLACEMENTS = [1, 2, 4, 8] as const;
const AGAINST_PLACEMENTS = ['ours', 'ours-without-overlay', 'k2+', 'k8', 'k8+'] as const;

export type ChoicesTable = { readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] };

export const choicesTables = (seeds: number, say: (line: string) => void): readonly ChoicesTable[] => {
  const cell = (policy: string, over: Partial<ChoicesOptions>): string => {
    const ratios = Array.from({ length: seeds }, (_, i) => choicesOf({ ...LONG, ...over, seed: i + 1, parts: policyOf(policy) }));
    return `${(ratios.reduce((sum, ratio) => sum + ratio, 0) / seeds).toFixed(2)} (${Math.max(...ratios).toFixed(2)})`;
  };
  const table = (first: string, policies: readonly string[], settings: readonly { readonly name: string; readonly over: Partial<ChoicesOptions> }[]) => ({
    head: [first, ...settings.map(({ name }) => name)],
    rows: policies.map((policy) => {
      const row = [policy, ...settings.map(({ over }) => cell(policy, over))];
      say(row.join(' · '));
      return row;
    }),
  });
  const ages = VIEW_AGES_MS.map((viewAgeMs) => ({ name: `views of ${viewAgeMs} ms`, over: { viewAgeMs } }));
  const counts = PLACEMENTS.map((placements) => ({ name: `${placements} placements`, over: { placements } }));
  return [table('policy', POLICIES, ages), table('policy', AGAINST_PLACEMENTS, counts)];
};
