/**
 * The demo's job: a third-party project's own test suite in many sandboxes, half of them with a breaking change, while the
 * Edge is killed. Everything it claims is read from inside the sandboxes afterwards.
 */
import type { DsecClient, ExecResult, Sandbox } from '#sdk/mod.ts';
import { type NamespaceRecord, recordNamespaces } from './leftovers.ts';
import type { DemoProject } from './project.ts';

export type JobOptions = {
  readonly dsec: DsecClient;
  readonly project: DemoProject;
  readonly images: { readonly base: string; readonly workspace: string; readonly toolkit: string };
  readonly count: number;
  /** Called once, when every suite has been asked for and at least one runs. */
  readonly interrupt: () => Promise<void>;
  readonly say: (line: string) => void;
};

export type SandboxReport = {
  readonly id: string;
  readonly broken: boolean;
  readonly firstCommandMs: number;
  readonly suite: ExecResult;
  /** How often the suite was started inside, by its own counter. */
  readonly suiteStarts: number;
  readonly patchStarts: number;
};

export type JobReport = {
  readonly createSeconds: number;
  readonly createMs: readonly number[];
  readonly sandboxes: readonly SandboxReport[];
  readonly failures: readonly string[];
  /** Of the sandboxes, while they lived. */
  readonly namespaces: NamespaceRecord;
};

const ONCE = '/opt/dsec-demo/bin/once';

export const runJob = async (o: JobOptions): Promise<JobReport> => {
  const { base, workspace, toolkit } = o.images;
  const startedAt = performance.now();
  const createMs: number[] = [];
  const group = await o.dsec.runContainers(
    {
      image: base,
      workspaces: [workspace],
      toolkits: [toolkit],
      memoryLimitMb: 512,
      cpuCoresLimit: 1,
      pidsLimit: 128,
      ttlTotal: 1_800,
      labels: { demo: 'suite' },
    },
    {
      count: o.count,
      timeoutMs: 120_000,
      onItem: (item) => {
        if (item.sandbox) createMs.push(performance.now() - startedAt);
      },
    },
  );
  const namespaces = recordNamespaces(group.sandboxes.flatMap(({ state }) => state?.pid ?? []));
  const createSeconds = (performance.now() - startedAt) / 1_000;
  const failures = group.failures.map(({ index, error }) => `sandbox ${index}: ${error.code}: ${error.message}`);
  o.say(`${group.sandboxes.length} of ${o.count} sandboxes run after ${createSeconds.toFixed(2)} s`);

  const prepared = await Promise.all(group.sandboxes.map((box, index) => prepare(box, index % 2 === 1, o.project)));
  o.say(`first command answered in all; ${prepared.filter((p) => p.broken).length} have the breaking change; starting the suites`);
  const [results] = await Promise.all([
    Promise.all(prepared.map(({ box }) => box.runShell(suiteScript(o.project), { key: 'suite' }))),
    interruptOnceRunning(
      prepared.map((p) => p.box),
      o.interrupt,
    ),
  ]);
  o.say('every suite has ended; reading the counters');
  const sandboxes = await Promise.all(prepared.map(async (p, i) => report(p, results[i] as ExecResult)));
  await group.stopAll();
  return { createSeconds, createMs, sandboxes, failures, namespaces };
};

type Prepared = { readonly box: Sandbox; readonly broken: boolean; readonly firstCommandMs: number };

const prepare = async (box: Sandbox, broken: boolean, project: DemoProject): Promise<Prepared> => {
  const startedAt = performance.now();
  const first = await box.exec(['/bin/true']);
  const firstCommandMs = performance.now() - startedAt;
  if (!first.ok) throw new Error(`${box.id}: /bin/true ended with ${first.exitCode}`);
  if (broken) {
    const patched = await box.runShell(`${ONCE} patch ${project.breakingChange}`, { key: 'patch', cwd: project.directory });
    if (!patched.ok) throw new Error(`${box.id}: the breaking change could not be made: ${patched.stderr}`);
  }
  return { box, broken, firstCommandMs };
};

const suiteScript = (project: DemoProject): string => `cd ${project.directory} && ${ONCE} suite ${project.testCommand}`;

/** Kills in the middle: after a suite has been seen running, before the last has ended. */
const interruptOnceRunning = async (boxes: readonly Sandbox[], interrupt: () => Promise<void>): Promise<void> => {
  for (;;) {
    const commands = await Promise.all(boxes.slice(0, 4).map((box) => box.commands()));
    if (commands.flat().some((command) => command.state === 'running')) break;
  }
  await interrupt();
};

const report = async ({ box, broken, firstCommandMs }: Prepared, suite: ExecResult): Promise<SandboxReport> => {
  const counted = await box.runShell('for c in suite patch; do cat /var/lib/demo/$c 2>/dev/null | wc -l; done');
  const [suiteStarts = 0, patchStarts = 0] = counted.stdout.trim().split('\n').map(Number);
  return { id: box.id, broken, firstCommandMs, suite, suiteStarts, patchStarts };
};
