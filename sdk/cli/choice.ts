/** How commands for many sandboxes let them be chosen: by id, by label, or all. */
import type { Command } from 'commander';
import { DsecError } from '#bus/errors.ts';
import type { Chosen } from '../many.ts';
import { collect, pairsOf } from './parse.ts';
import { type CommonFlags, withCommonOptions } from './session.ts';

export type ChoiceFlags = CommonFlags & { readonly all?: boolean; readonly label?: string[]; readonly wait: boolean; readonly timeout?: string };

/** `timeout`: what `--timeout` bounds. */
export const withChoice = (command: Command, timeout: string): Command =>
  withCommonOptions(
    command
      .argument('[sandboxes...]', 'ids')
      .option('-a, --all', 'every sandbox of the project that this applies to')
      .option('-l, --label <KEY=VALUE>', 'every one with this label; repeatable, all must match', collect)
      .option('--no-wait', 'return as soon as what was asked for is stored')
      .option('--timeout <seconds>', timeout),
  );

export const choiceOf = (verb: string, ids: readonly string[], flags: ChoiceFlags): Chosen => {
  const labels = pairsOf('label', flags.label);
  const many = flags.all === true || labels !== undefined;
  if (many === ids.length > 0) throw DsecError.of('INVALID_ARGUMENT', `name sandboxes, or choose them by --all or --label: dsec ${verb} ID…`);
  return many ? { labels: labels ?? {} } : { ids };
};
