/** `dsec job extend`: a new life. */
import type { Command as Cli } from 'commander';
import { printJson, printLine, time } from '../../output.ts';
import { millisecondsOf } from '../../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';

export const registerExtend = (job: Cli): void => {
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
