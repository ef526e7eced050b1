/** `dsec extend`: new lives for a sandbox, counted from now. */
import type { Command as Cli } from 'commander';
import { printJson, printTable, span, time } from '../output.ts';
import { numberOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type Flags = CommonFlags & { readonly ttl?: string; readonly ttlRunning?: string; readonly idle?: string; readonly idlePause?: string };

export const registerExtend = (program: Cli): void => {
  withCommonOptions(
    program
      .command('extend')
      .description('give a sandbox new lives, counted from now; prints what was granted')
      .argument('<sandbox>', 'id of the sandbox')
      .option('--ttl <seconds>', 'life in total')
      .option('--ttl-running <seconds>', 'how long it may run without a pause; "none" takes the limit away')
      .option('--idle-pause <seconds>', 'pause it after this long without a command; "none" takes that away')
      .option('--idle <seconds>', 'stop it after this long without a command; "none" takes the limit away')
      .addHelpText('after', '\nExamples:\n  dsec extend sb-0-… --ttl 3600\n  dsec extend sb-0-… --idle none\n'),
  ).action((id: string, flags: Flags) =>
    act(flags, async (dsec) => {
      const lives = {
        ttlTotal: numberOf('ttl', flags.ttl),
        ttlRunning: lifeOf('ttl-running', flags.ttlRunning),
        ttlRunningStop: lifeOf('idle', flags.idle),
        ttlRunningPause: lifeOf('idle-pause', flags.idlePause),
      };
      const decision = await dsec.sandbox(id).extend(lives);
      if (flags.json) await printJson(decision);
      else if (!decision.lives) await printTable(['SANDBOX', id], [['stored', decision.reason ?? 'the node has not answered yet']]);
      else {
        const { totalDeadlineAt, runningMs, runningDeadlineAt, idleMs, idlePauseMs } = decision.lives;
        await printTable(
          ['SANDBOX', id],
          [
            ['total life ends', time(totalDeadlineAt)],
            ['running life', runningMs === null ? 'none' : runningDeadlineAt === null ? span(runningMs) : `ends ${time(runningDeadlineAt)}`],
            ['paused when idle for', idlePauseMs === null ? 'never' : span(idlePauseMs)],
            ['idle life', idleMs === null ? 'none' : span(idleMs)],
          ],
        );
      }
      return 0;
    }),
  );
};

const lifeOf = (option: string, value: string | undefined): number | null | undefined => (value === 'none' ? null : numberOf(option, value));
