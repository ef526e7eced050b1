/** `dsec job ls`: the project's jobs. */
import type { Command as Cli } from 'commander';
import type { JobView } from '#bus/api/jobs.ts';
import { JobStatus } from '#bus/job/schema.ts';
import { printJson, TablePrinter, time } from '../../output.ts';
import { collect, oneOf } from '../../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';

const HEAD = ['JOB', 'STATUS', 'KEY', 'OWNER', 'ENDS', 'TITLE'];
const rowOf = ({ state }: JobView): unknown[] => [
  state.id,
  state.status,
  state.key,
  state.owner?.holder ?? '-',
  state.endedAt === null ? time(state.deadlineAt) : `ended (${state.endReason})`,
  state.spec.title,
];

export const registerList = (job: Cli): void => {
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
