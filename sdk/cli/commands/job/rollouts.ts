/** `dsec job rollouts`: the episodes of a job. */
import type { Command as Cli } from 'commander';
import { RolloutStatus } from '#bus/rollout/schema.ts';
import { printJson, TablePrinter } from '../../output.ts';
import { collect, oneOf } from '../../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';

export const registerRollouts = (job: Cli): void => {
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
