/** `dsec job show`: one job, its owner and what became of its members. */
import type { Command as Cli } from 'commander';
import type { JobView } from '#bus/api/jobs.ts';
import { amountsText } from '../../amounts.ts';
import { printJson, printTable, span, time } from '../../output.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';
import { countsOf } from './counts.ts';

export const registerShow = (job: Cli): void => {
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
  ['share of the quota', amountsText(state.spec.share)],
  ['ends', time(state.deadlineAt)],
  ['members at the newest goal', state.counts ? countsOf(state.counts) : '-'],
  [
    'rollouts',
    Object.entries(rollouts)
      .map(([status, n]) => `${n} ${status}`)
      .join(', ') || 'none',
  ],
];
