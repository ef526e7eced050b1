/**
 * `npm run sim -- <scenario>`: runs a scenario, says how far it is, and sums up. A run is named by commit, Node version, scenario
 * and seed; `--replay` runs it twice and shows the first step at which the two differ, if there is one.
 */
import { randomInt } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import Table from 'cli-table3';
import { firstDifference } from './kernel/first-difference.ts';
import type { Trace } from './kernel/trace.ts';
import { timeChart } from './report/charts.ts';
import { policyOf, POLICIES } from './report/policies.ts';
import { choicesTables } from './report/choices-tables.ts';
import { compare } from './report/compare.ts';
import { progressTo, recordOf, summaryOf } from './report/table.ts';
import { TraceFile } from './report/trace-file.ts';
import { BURST, burst } from './scenarios/burst.ts';
import type { Figures } from './scenarios/figures.ts';
import { FULL, full } from './scenarios/full.ts';
import { day, edgeLoss, preempt, type ScenarioOptions, upgrade } from './scenarios/others.ts';
import type { Run, RunResult } from './scenarios/run.ts';
import { smoke } from './scenarios/smoke.ts';

type Flags = {
  readonly seed?: number;
  readonly seeds: number;
  readonly from?: number;
  readonly scale: number;
  readonly replay?: boolean;
  readonly trace?: string;
  readonly charts?: string;
  readonly compare?: string;
  readonly json?: boolean;
  readonly overflow?: boolean;
};
type Asked = {
  readonly seed: number;
  readonly scale: number;
  readonly overflow?: boolean;
  readonly trace?: Trace;
  readonly observers?: TraceFile['observer'][];
  readonly say?: (run: Run, figures: Figures) => void;
};
type Outcome = RunResult & { readonly figures?: Figures };

const SCENARIOS: Readonly<Record<string, (o: Asked) => Outcome>> = {
  smoke: ({ seed, ...o }) => smoke(seed, o),
  full: (o) => full({ ...FULL, ...o, nodes: Math.max(2, Math.round(FULL.nodes * o.scale)), sandboxes: Math.round(FULL.sandboxes * o.scale) }),
  burst: (o) => burst({ ...BURST, ...o, nodes: Math.max(2, Math.round(BURST.nodes * o.scale)), sandboxes: Math.round(BURST.sandboxes * o.scale) }),
  day: (o) => day(o as ScenarioOptions),
  preempt: (o) => preempt(o as ScenarioOptions),
  'edge-loss': (o) => edgeLoss(o as ScenarioOptions),
  upgrade: (o) => upgrade(o as ScenarioOptions),
};
const NAMES = [...Object.keys(SCENARIOS), 'choices'];

const say = (text: string): void => void process.stderr.write(text);
const print = (text: string): void => void process.stdout.write(`${text}\n`);
const whole = (text: string): number => {
  const n = Number(text);
  if (!Number.isInteger(n) || n < 0) throw new InvalidArgumentError('It is a whole number.');
  return n;
};

const share = (text: string): number => {
  const x = Number(text);
  if (!(x > 0 && x <= 1)) throw new InvalidArgumentError('It is a share of the full size: above 0, at most 1.');
  return x;
};

const once = (name: string, flags: Flags): boolean => {
  const scenario = SCENARIOS[name];
  if (!scenario) throw new Error(`there is no scenario ${name}; there are ${NAMES.join(', ')}`);
  const seed = flags.seed ?? 1;
  const asked = { seed, scale: flags.scale, ...(flags.overflow ? { overflow: true } : {}) };
  if (flags.replay) return replay(scenario, asked);
  const file = flags.trace === undefined ? undefined : new TraceFile(flags.trace);
  const startedAt = performance.now();
  say(`${name}, seed ${seed}\n`);
  const result = scenario({ ...asked, ...(file ? { observers: [file.observer] } : {}), say: progressTo(say, () => performance.now()) });
  file?.close();
  const wallMs = performance.now() - startedAt;
  const rssMib = process.resourceUsage().maxRSS / 1_024;
  const { hash, steps, virtualMs, violation, figures } = result;
  if (flags.json) print(JSON.stringify(recordOf(name, result, wallMs, rssMib)));
  else if (figures) print(summaryOf({ ...result, figures }, wallMs, rssMib));
  else print(`${violation ? violation.message : 'invariants hold'} · ${steps} steps, ${Math.round(virtualMs / 1_000)} s virtual, trace ${hash}`);
  if (flags.charts !== undefined && figures) {
    mkdirSync(flags.charts, { recursive: true });
    const path = join(flags.charts, `${name}-${seed}.svg`);
    writeFileSync(path, timeChart(`${name}, seed ${seed}`, figures.rows));
    say(`charts: ${path}\n`);
  }
  return violation === null;
};

const replay = (scenario: (o: Asked) => Outcome, asked: { readonly seed: number; readonly scale: number }): boolean => {
  const rerun = (trace: Trace): void => void scenario({ ...asked, trace });
  const difference = firstDifference(rerun, rerun);
  print(difference ? `step ${difference.step} differs:\n  ${difference.left}\n  ${difference.right}` : `seed ${asked.seed}: twice the same, step by step`);
  return difference === null;
};

const many = (flags: Flags): boolean => {
  const from = flags.from ?? randomInt(2 ** 31);
  const broken: string[] = [];
  const found = (line: string): void => {
    broken.push(line);
    say(`  ${line}\n`);
  };
  say(`smoke, seeds ${from} to ${from + flags.seeds - 1}\n`);
  for (let seed = from; seed < from + flags.seeds; seed += 1) {
    try {
      const { violation } = smoke(seed);
      if (violation) found(`seed ${seed}: ${violation.message}`);
    } catch (thrown) {
      found((thrown as Error).message);
    }
    const done = seed - from + 1;
    if (done % 10 === 0 || done === flags.seeds) say(`  ${done} of ${flags.seeds}, ${broken.length} broken\n`);
  }
  for (const line of broken) print(`${line}\n  again: npm run sim -- smoke --seed ${/\d+/.exec(line)?.[0]}`);
  print(`${flags.seeds - broken.length} of ${flags.seeds} seeds hold`);
  return broken.length === 0;
};

const comparison = (flags: Flags): boolean => {
  const names = (flags.compare ?? '').split(',').filter((name) => name.length > 0);
  const wanted = names.length > 0 ? names : [...POLICIES];
  for (const name of wanted) policyOf(name);
  const { head, rows, charts } = compare(wanted, flags.seed ?? 1, flags.scale, (line) => say(`  ${line}\n`));
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  table.push(...rows.map((row) => [...row]));
  print(table.toString());
  if (flags.charts === undefined) return true;
  mkdirSync(flags.charts, { recursive: true });
  for (const [name, svg] of charts) writeFileSync(join(flags.charts, `${name}.svg`), svg);
  say(`charts: ${flags.charts}\n`);
  return true;
};

const choices = (flags: Flags): boolean => {
  for (const { head, rows } of choicesTables(flags.seeds, (line) => say(`  ${line}\n`))) {
    const table = new Table({ head: [...head], style: { head: [], border: [] } });
    table.push(...rows.map((row) => [...row]));
    print(table.toString());
  }
  return true;
};

const program = new Command('sim')
  .description('Runs the platform with every decision it makes in production, in one process, in virtual time.')
  .argument('<scenario>', NAMES.join(', '))
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .option('--seed <n>', 'what decides everything', whole)
  .option('--seeds <n>', 'smoke, choices: that many seeds, one after another', whole, 1)
  .option('--from <n>', 'smoke: the first of them; drawn when left out', whole)
  .option('--scale <x>', 'share of the full size of a large scenario, above 0 up to 1', share, 1)
  .option('--replay', 'run it twice and show the first difference')
  .option('--trace <file>', 'write every commit as a line of JSON, as dsec events --json prints them')
  .option('--charts <dir>', 'write charts over virtual time (SVG)')
  .option('--compare [policies]', `burst: compare policies of placement (${POLICIES.join(', ')})`)
  .option('--overflow', 'day: a fifth of the fleet, whose peaks go to the cloud')
  .option('--json', 'one line of JSON instead of a table')
  .addHelpText(
    'after',
    '\nExamples:\n  npm run sim -- smoke --seed 7\n  npm run sim -- smoke --seeds 1000 --from 1\n  npm run sim -- full --charts /tmp/charts\n  npm run sim -- burst --compare ours,random,least-loaded --charts /tmp/charts\n  npm run sim -- choices --seeds 3\n  npm run sim -- edge-loss --scale 0.1 --trace /tmp/commits.jsonl\n',
  )
  .action((name: string, flags: Omit<Flags, 'compare'> & { readonly compare?: string | true }) => {
    const { compare: policies, ...rest } = flags;
    const run =
      policies !== undefined
        ? () => comparison({ ...rest, compare: policies === true ? '' : policies })
        : name === 'choices'
          ? () => choices(rest)
          : name === 'smoke' && rest.seeds > 1
            ? () => many(rest)
            : () => once(name, rest);
    process.exitCode = run() ? 0 : 1;
  });

try {
  program.parse();
} catch (thrown) {
  say(`sim: ${(thrown as Error).message}\n`);
  process.exitCode = 2;
}
