/**
 * Finds the first step at which two runs that should be equal are not: first by the checkpoints of their hashes, then by running
 * both again and comparing the lines of the one stretch in which they part. Memory stays bounded however long the runs are.
 */
import { KERNEL_LIMITS } from './limits.ts';
import { Trace, type TraceObserver } from './trace.ts';

/** Runs to the end under the given trace. Must build everything anew each time. */
export type Rerun = (trace: Trace) => void;
export type Difference = { readonly step: number; readonly left: string | undefined; readonly right: string | undefined };

export const firstDifference = (left: Rerun, right: Rerun): Difference | null => {
  const hashes = [left, right].map((rerun) => {
    const trace = new Trace({ checkpoints: true });
    rerun(trace);
    return { checkpoints: trace.checkpoints, hash: trace.hash, steps: trace.steps };
  });
  const [a, b] = hashes;
  if (!a || !b || (a.hash === b.hash && a.steps === b.steps)) return null;
  const from = firstDifferent(a.checkpoints, b.checkpoints) * KERNEL_LIMITS.checkpointSteps;
  const stretch = (rerun: Rerun): string[] => linesOf(rerun, from, from + KERNEL_LIMITS.checkpointSteps);
  const [lines, others] = [stretch(left), stretch(right)];
  const at = firstDifferent(lines, others);
  return { step: stepOf(lines[at] ?? others[at]) ?? from, left: lines[at], right: others[at] };
};

/** A rolling hash never comes back once it differs, so the first different checkpoint ends the equal part. */
const firstDifferent = (a: readonly string[], b: readonly string[]): number => {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
};

const linesOf = (rerun: Rerun, from: number, to: number): string[] => {
  const lines: string[] = [];
  const observer: TraceObserver = (step, line) => {
    if (step > from && step <= to) lines.push(`${step}: ${line()}`);
  };
  rerun(new Trace({ observer }));
  return lines;
};

const stepOf = (line: string | undefined): number | undefined => (line === undefined ? undefined : Number.parseInt(line, 10));
