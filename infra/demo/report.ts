/** The demo's table, and the check of every claim in it. */
import Table from 'cli-table3';
import type { JobReport, SandboxReport } from './job.ts';
import { countLeftovers, type Leftovers } from './leftovers.ts';
import { DEMO_PROJECT } from './project.ts';

const percentile = (samples: readonly number[], p: number): string => {
  const sorted = [...samples].sort((a, b) => a - b);
  return `${(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN).toFixed(1)} ms`;
};

/** What the Edge that replaced the killed one found in the log and in the kernel. */
export type Rehydration = { readonly sandboxes: number; readonly present: number; readonly durationMs: number };
type Run = { readonly rehydration: Rehydration | undefined; readonly left: number; readonly seconds: number };

export const printReport = (report: JobReport, run: Run): void => {
  const { sandboxes, createMs, createSeconds } = report;
  const firstCommandMs = sandboxes.map((s) => s.firstCommandMs);
  const table = new Table({ head: ['', 'p50', 'p99'], style: { head: [], border: [] } });
  table.push(
    ['create, from the request for all of them', percentile(createMs, 0.5), percentile(createMs, 0.99)],
    ['first command', percentile(firstCommandMs, 0.5), percentile(firstCommandMs, 0.99)],
  );
  process.stdout.write(`\n${table.toString()}\n`);

  const results = new Table({ head: ['suite of', 'sandboxes', 'passed', 'failed', 'last line'], style: { head: [], border: [] } });
  for (const broken of [false, true]) {
    const half = sandboxes.filter((s) => s.broken === broken);
    const passed = half.filter((s) => s.suite.exitCode === 0).length;
    results.push([
      broken ? 'the project with the breaking change' : DEMO_PROJECT.title,
      half.length,
      passed,
      half.length - passed,
      half[0] ? summaryOf(half[0]) : '',
    ]);
  }
  process.stdout.write(`${results.toString()}\n`);
  const starts = sandboxes.reduce((n, s) => n + s.suiteStarts, 0);
  const lines = [
    `creates per second        ${(sandboxes.length / createSeconds).toFixed(1)}`,
    `Edge killed with SIGKILL  while suites ran; the next one rehydrated ${run.rehydration?.sandboxes ?? 0} sandboxes in ${run.rehydration?.durationMs ?? Number.NaN} ms`,
    `suites asked for          ${sandboxes.length}; started inside: ${starts}; results: ${sandboxes.length}`,
    `left on this machine      ${run.left === 0 ? 'nothing (processes, mounts, cgroups, network namespaces, files)' : run.left}`,
    `whole demo                ${run.seconds.toFixed(1)} s`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
};

const summaryOf = ({ suite }: SandboxReport): string =>
  `${suite.stdout}\n${suite.stderr}`
    .split('\n')
    .filter((line) => DEMO_PROJECT.summary.test(line))
    .at(-1)
    ?.trim()
    .slice(0, 60) ?? '(none)';

/** Everything that is not as it must be; empty when the demo may say that it worked. */
export const verify = ({ sandboxes, failures }: JobReport, count: number, rehydration: Rehydration | undefined, left: Leftovers): string[] => {
  const problems = [...failures];
  if (sandboxes.length !== count) problems.push(`${sandboxes.length} of ${count} sandboxes came to run`);
  if (rehydration?.sandboxes !== count) problems.push(`the Edge that came back rehydrated ${rehydration?.sandboxes ?? 'nothing'} of ${count} sandboxes`);
  for (const s of sandboxes) problems.push(...wrongWith(s).map((what) => `${s.id}: ${what}`));
  if (countLeftovers(left) > 0) problems.push(`left behind: ${JSON.stringify(left)}`);
  return problems;
};

const wrongWith = ({ broken, suite, suiteStarts, patchStarts }: SandboxReport): string[] => {
  const wrong: string[] = [];
  if (suite.reason !== 'exited') wrong.push(`the suite ended by ${suite.reason}`);
  if (broken && suite.exitCode === 0) wrong.push('the suite passed although the project is broken');
  if (!broken && suite.exitCode !== 0) wrong.push(`the suite failed with ${suite.exitCode}: ${suite.stderr.slice(-300)}`);
  if (!DEMO_PROJECT.summary.test(`${suite.stdout}\n${suite.stderr}`)) wrong.push('the suite printed no summary: its output was lost');
  if (suiteStarts !== 1) wrong.push(`the suite was started ${suiteStarts} times`);
  if (patchStarts !== (broken ? 1 : 0)) wrong.push(`the breaking change was made ${patchStarts} times`);
  return wrong;
};
