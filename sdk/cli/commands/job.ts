/** `dsec job …` and `dsec rollout …`: groups of sandboxes with an owner, and the episodes in them. @paper §6.2 §6.3 */
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import type { Command as Cli } from 'commander';
import { OwnerLostPolicy, JobStatus, type MemberCounts } from '#bus/job/schema.ts';
import type { JobView } from '#bus/api/jobs.ts';
import { RolloutStatus } from '#bus/rollout/schema.ts';
import type { DsecClient } from '../../client.ts';
import type { JobOptions, JobWait } from '../../trainer/jobs.ts';
import { complain, printJson, printLine, printTable, span, TablePrinter, time } from '../output.ts';
import { collect, millisecondsOf, oneOf, pairsOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

export const registerJob = (program: Cli): void => {
  const job = program.command('job').description('groups of sandboxes under one owner, one deadline and one set of defaults');
  registerCreate(job);
  registerList(job);
  registerShow(job);
  registerMembers(job);
  for (const verb of GOALS) registerGoal(job, verb);
  registerExtend(job);
  registerRollouts(job);
  registerExport(job);
};

type CreateFlags = CommonFlags & {
  readonly life?: string;
  readonly lease?: string;
  readonly grace?: string;
  readonly onOwnerLost?: string;
  readonly label?: string[];
  readonly title?: string;
};

const registerCreate = (job: Cli): void => {
  withCommonOptions(
    job
      .command('create')
      .description('make a job under a key of your own; prints its id')
      .argument('<key>', 'the same key and options name the same job')
      .option('--title <text>', 'for people')
      .option('--life <seconds>', 'from now; no member lives longer (default: a day)')
      .option('--lease <seconds>', 'how long an owner is taken for living after its newest word (default: 60)')
      .option('--grace <seconds>', 'how long an owner may stay away after that (default: 0)')
      .option('--on-owner-lost <policy>', `then: ${OwnerLostPolicy.options.join(', ')} (default: pause)`)
      .option('-l, --label <KEY=VALUE>', 'label of the job; repeatable', collect)
      .addHelpText('after', '\nExample:\n  dsec job create nightly --life 7200 --on-owner-lost stop\n'),
  ).action((key: string, flags: CreateFlags) =>
    act(flags, async (dsec) => {
      const spec = {
        title: flags.title,
        lifeMs: millisecondsOf('life', flags.life),
        leaseMs: millisecondsOf('lease', flags.lease),
        graceMs: millisecondsOf('grace', flags.grace),
        onOwnerLost: oneOf('on-owner-lost', OwnerLostPolicy.options, flags.onOwnerLost),
        labels: pairsOf('label', flags.label),
      };
      const given = Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as JobOptions;
      const made = await dsec.jobs.create(key, given);
      await (flags.json ? printJson(made) : printLine(made.state.id));
      return 0;
    }),
  );
};

const HEAD = ['JOB', 'STATUS', 'KEY', 'OWNER', 'ENDS', 'TITLE'];
const rowOf = ({ state }: JobView): unknown[] => [
  state.id,
  state.status,
  state.key,
  state.owner?.holder ?? '-',
  state.endedAt === null ? time(state.deadlineAt) : `ended (${state.endReason})`,
  state.spec.title,
];

const registerList = (job: Cli): void => {
  withCommonOptions(
    job
      .command('ls')
      .description('the project’s jobs')
      .option('-s, --status <status>', `only with this status: ${JobStatus.options.join(', ')}; repeatable`, collect)
      .addHelpText('after', '\nExample:\n  dsec job ls --status active --status paused\n'),
  ).action((flags: CommonFlags & { status?: string[] }) =>
    act(flags, async (dsec) => {
      const status = flags.status?.map((value) => oneOf('status', JobStatus.options, value) as JobStatus);
      const table = new TablePrinter(HEAD);
      for await (const view of dsec.jobs.list({ status })) await (flags.json ? printJson(view) : table.add(rowOf(view)));
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};

const registerMembers = (job: Cli): void => {
  withCommonOptions(
    job
      .command('members')
      .description('the job’s sandboxes, each with its status and why it failed')
      .argument('<job>', 'id')
      .addHelpText('after', '\nExamples:\n  dsec job members jb-0-…\n  dsec job pause jb-0-… && dsec job members jb-0-… --json\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const { state } = await dsec.jobs.get(id); // a job that does not exist has no members, and says so
      const table = new TablePrinter(['SANDBOX', 'STATUS', 'NODE', 'ROLLOUT', 'ROLE', 'FAILURE']);
      for await (const box of dsec.list({ labels: { [PLATFORM_LABELS.job]: state.id } })) {
        const { id: member, status, edge, failure, spec } = box.state ?? (await box.refresh());
        const { [PLATFORM_LABELS.rollout]: rollout = null, [PLATFORM_LABELS.role]: role = null } = spec.labels;
        if (flags.json) await printJson({ id: member, status, edge, rollout, role, failure });
        else await table.add([member, status, edge, rollout ?? '-', role ?? '-', failure?.code ?? '-']);
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};

const registerShow = (job: Cli): void => {
  withCommonOptions(
    job
      .command('show')
      .description('one job: its owner, its goal, its rollouts by status')
      .argument('<job>', 'id')
      .addHelpText('after', '\nExample:\n  dsec job show jb-0-…\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const view = await dsec.jobs.get(id);
      const byStatus = new Map<string, number>();
      for await (const { status } of dsec.jobs.rollouts(id)) byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
      const rollouts = Object.fromEntries(byStatus);
      if (flags.json) await printJson({ ...view, rollouts });
      else await printTable(['JOB', id], describe(view, rollouts));
      return 0;
    }),
  );
};

const describe = ({ state }: JobView, rollouts: Readonly<Record<string, number>>): [string, unknown][] => [
  ['status', state.endReason ? `${state.status} (${state.endReason})` : state.status],
  ['key', state.key],
  ['owner', state.owner ? `${state.owner.holder}, epoch ${state.epoch}, lease until ${time(state.owner.leaseUntil)}` : `nobody (epoch ${state.epoch})`],
  ['when the owner is lost', `${state.spec.onOwnerLost}, after ${span(state.spec.leaseMs)} of lease and ${span(state.spec.graceMs)} of grace`],
  ['ends', time(state.deadlineAt)],
  ['members at the newest goal', state.counts ? countsOf(state.counts) : '-'],
  [
    'rollouts',
    Object.entries(rollouts)
      .map(([status, n]) => `${n} ${status}`)
      .join(', ') || 'none',
  ],
];

const countsOf = ({ reached, failed, left }: MemberCounts): string => `${reached} there, ${failed} failed, ${left} left`;

type Goal = { readonly name: 'pause' | 'resume' | 'stop'; readonly past: string; readonly description: string };
const GOALS: readonly Goal[] = [
  { name: 'pause', past: 'paused', description: 'freeze every member and give its memory back' },
  { name: 'resume', past: 'resumed', description: 'let every member go on' },
  { name: 'stop', past: 'ended', description: 'end the job with every member and rollout' },
];

const registerGoal = (job: Cli, { name, past, description }: Goal): void => {
  withCommonOptions(
    job
      .command(name)
      .description(description)
      .argument('<job>', 'id')
      .option('--no-wait', 'return as soon as the goal is recorded')
      .option('--timeout <seconds>', 'how long to wait (default: 600)')
      .addHelpText('after', `\nRepeating it is harmless. Interrupted, what was recorded goes on.\n\nExample:\n  dsec job ${name} jb-0-…\n`),
  ).action((id: string, flags: CommonFlags & { wait: boolean; timeout?: string }) =>
    act(flags, async (dsec) => {
      const stop = new AbortController();
      const interrupt = (): void => stop.abort();
      process.once('SIGINT', interrupt);
      try {
        const options: JobWait = { wait: flags.wait, timeoutMs: millisecondsOf('timeout', flags.timeout), signal: stop.signal };
        const counts = await dsec.jobs[name](id, options);
        if (flags.json) await printJson({ id, done: flags.wait ? past : 'recorded', counts });
        else await printLine(counts ? `${id} ${past}: ${countsOf(counts)}` : id);
        return counts && counts.failed + counts.left > 0 ? EXIT_PARTLY : 0;
      } finally {
        process.off('SIGINT', interrupt);
      }
    }),
  );
};

/** Some members did not come to the goal. */
const EXIT_PARTLY = 9;

const registerExtend = (job: Cli): void => {
  withCommonOptions(
    job
      .command('extend')
      .description('give the job a new life, counted from now')
      .argument('<job>', 'id')
      .requiredOption('--life <seconds>', 'from now')
      .addHelpText('after', '\nMembers keep the lives that they have; extend those that need more.\n\nExample:\n  dsec job extend jb-0-… --life 3600\n'),
  ).action((id: string, flags: CommonFlags & { life: string }) =>
    act(flags, async (dsec) => {
      const view = await dsec.jobs.extend(id, millisecondsOf('life', flags.life) ?? 0);
      await (flags.json ? printJson(view) : printLine(`${id} ends ${time(view.state.deadlineAt)}`));
      return 0;
    }),
  );
};

const registerRollouts = (job: Cli): void => {
  withCommonOptions(
    job
      .command('rollouts')
      .description('the episodes of a job')
      .argument('<job>', 'id')
      .option('-s, --status <status>', `only with this status: ${RolloutStatus.options.join(', ')}; repeatable`, collect)
      .addHelpText('after', '\nExample:\n  dsec job rollouts jb-0-… --status asking\n'),
  ).action((id: string, flags: CommonFlags & { status?: string[] }) =>
    act(flags, async (dsec) => {
      const status = flags.status?.map((value) => oneOf('status', RolloutStatus.options, value) as RolloutStatus);
      const table = new TablePrinter(['ROLLOUT', 'STATUS', 'KEY', 'TURNS', 'STEPS', 'WORKER', 'OUTCOME', 'REWARD']);
      for await (const r of dsec.jobs.rollouts(id, { status }))
        await (flags.json ? printJson(r) : table.add([r.id, r.status, r.key, r.turns, r.steps, r.attempt + 1, r.outcome, r.reward]));
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};

const registerExport = (job: Cli): void => {
  withCommonOptions(
    job
      .command('export')
      .description('every trajectory of a job as JSON, one event per line')
      .argument('<job>', 'id')
      .addHelpText('after', '\nExample:\n  dsec job export jb-0-… > trajectories.jsonl\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      let rollouts = 0;
      let newest = '';
      for await (const record of dsec.jobs.export(id)) {
        if (record.rolloutId !== newest) rollouts += 1;
        newest = record.rolloutId;
        await printJson(record);
      }
      await complain(`${rollouts} rollouts`);
      return 0;
    }),
  );
};

export const registerRollout = (program: Cli): void => {
  const rollout = program.command('rollout').description('one agent’s episode in a job');
  withCommonOptions(
    rollout.command('show').description('where it stands').argument('<rollout>', 'id').addHelpText('after', '\nExample:\n  dsec rollout show ro-0-…\n'),
  ).action((id: string, flags: CommonFlags) => act(flags, (dsec) => show(dsec, id, flags)));
  withCommonOptions(
    rollout
      .command('trajectory')
      .description('its events, one JSON document per line')
      .argument('<rollout>', 'id')
      .addHelpText('after', '\nExample:\n  dsec rollout trajectory ro-0-… | jq .type\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      for await (const record of dsec.jobs.trajectory(id)) await printJson(record);
      return 0;
    }),
  );
  withCommonOptions(
    rollout
      .command('stop')
      .description('end it and its sandboxes')
      .argument('<rollout>', 'id')
      .addHelpText('after', '\nExample:\n  dsec rollout stop ro-0-…\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      await dsec.jobs.stopRollout(id);
      await (flags.json ? printJson({ id, done: 'recorded' }) : printLine(id));
      return 0;
    }),
  );
};

const show = async (dsec: DsecClient, id: string, flags: CommonFlags): Promise<number> => {
  const view = await dsec.jobs.rollout(id);
  if (flags.json) {
    await printJson(view);
    return 0;
  }
  const { state } = view;
  const error = state.error ? `${state.error.code}: ${state.error.message} (fault: ${state.error.fault})` : '-';
  await printTable(
    ['ROLLOUT', id],
    [
      ['status', state.status],
      ['job', state.jobId],
      ['key', state.key],
      ['worker', `${state.worker ?? '-'}${state.attempt > 0 ? ` (the ${state.attempt + 1}th)` : ''}`],
      ...Object.entries(state.sandboxes).map(([role, sandbox]) => [role, sandbox]),
      [
        'turns, steps',
        `${state.turns}, ${state.steps}${state.status === 'asking' ? `; turn ${state.open?.turn} waits for an answer since ${time(state.open?.askedAt ?? 0)}` : ''}`,
      ],
      ['outcome', state.outcome ?? '-'],
      ['reward', state.reward ?? '-'],
      ['error', error],
    ],
  );
  return 0;
};
