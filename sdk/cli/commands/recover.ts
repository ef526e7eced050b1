/** `dsec recover`: a sandbox in the place of one that was lost. */
import type { Command as Cli } from 'commander';
import type { DsecClient } from '../../client.ts';
import { printJson, printLine } from '../output.ts';
import { millisecondsOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type Flags = CommonFlags & { readonly key?: string; readonly timeout?: string };

export const registerRecover = (program: Cli): void => {
  withCommonOptions(
    program
      .command('recover')
      .description('make a sandbox in the place of a lost one, from its newest snapshot and its recorded commands')
      .argument('<sandbox>', 'id of the sandbox that was lost or has ended')
      .option('--key <key>', 'the same key gives the same sandbox; one per lost sandbox when absent')
      .option('--timeout <seconds>', 'how long to wait')
      .addHelpText(
        'after',
        '\nPrints the new id. Commands with the keys of recorded ones are answered from the record, up to the first that is not recorded; `dsec ps --json` says\nwhich ("replayed"). Commands are recorded in jobs with recordCommands.\n\nExamples:\n  dsec recover sb-0-…\n  dsec exec --key step-1 $(dsec recover sb-0-…) -- make\n',
      ),
  ).action((id: string, flags: Flags) => act(flags, (dsec) => recover(dsec, id, flags)));
};

const recover = async (dsec: DsecClient, lost: string, flags: Flags): Promise<number> => {
  const box = await dsec.recover(lost, { ...(flags.key ? { key: flags.key as never } : {}), timeoutMs: millisecondsOf('timeout', flags.timeout) });
  const { spec } = await box.refresh();
  await (flags.json ? printJson({ id: box.id, recoveredFrom: spec.recoveredFrom }) : printLine(box.id));
  return 0;
};
