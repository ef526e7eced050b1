/** `dsec job members`: a job's sandboxes. */
import type { Command as Cli } from 'commander';
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
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
