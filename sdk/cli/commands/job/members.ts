/** `dsec job members`: a job's sandboxes. */
import type { Command as Cli } from 'commander';
import { printJson, TablePrinter } from '../../output.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';

export const registerMembers = (job: Cli): void => {
  withCommonOptions(
    job
      .command('members')
      .description('the job’s sandboxes, each with its status and why it failed')
      .argument('<job>', 'id')
      .addHelpText('after', '\nExamples:\n  dsec job members jb-0-…\n  dsec job pause jb-0-… && dsec job members jb-0-… --json\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const table = new TablePrinter(['SANDBOX', 'STATUS', 'NODE', 'ROLLOUT', 'ROLE', 'FAILURE']);
      for await (const member of dsec.jobs.members(id)) {
        const { id: sandbox, status, edge, rollout, role, failure } = member;
        if (flags.json) await printJson(member);
        else await table.add([sandbox, status, edge, rollout ?? '-', role ?? '-', failure?.code ?? '-']);
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};
