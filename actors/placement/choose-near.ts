/**
 * Placement of forks: on the node of the sandbox that they are made from while it has room, because what they stand on lies there
 * and is in its page cache; the rest like any other group.
 */
import type { EdgeName } from '#bus/ids.ts';
import { choose, type ChooseInput } from './choose.ts';

/** As `choose`; `near` comes first unless it has refused. */
export const chooseNear = (input: ChooseInput, near: EdgeName): (EdgeName | null)[] => {
  const there = input.fleet.filter(({ edge }) => edge === near);
  const first = choose({ ...input, fleet: there });
  const missing = first.filter((edge) => edge === null).length;
  if (missing === 0) return first;
  const rest = choose({ ...input, count: missing, exclude: [...input.exclude, near] });
  return first.map((edge) => edge ?? rest.shift() ?? null);
};
