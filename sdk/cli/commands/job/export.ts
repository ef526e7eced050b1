/** `dsec job export`: every trajectory of a job. */
import type { Command as Cli } from 'commander';
import { complain, printJson } from '../../output.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';

export const registerExport = (job: Cli): void => {
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
