/** `dsec fork`: sandboxes that begin where a live one is. */
import type { Command as Cli } from 'commander';
import { ERRORS } from '#bus/errors.ts';
import type { DsecClient } from '../../client.ts';
import type { ForkOptions } from '../../fork.ts';
import { complain, printJson, printLine } from '../output.ts';
import { collect, millisecondsOf, numberOf, pairsOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type Flags = CommonFlags & {
  readonly count: string;
  readonly key?: string;
  readonly memory?: string;
  readonly cpus?: string;
  readonly pids?: string;
  readonly disk?: string;
  readonly ttl?: string;
  readonly idle?: string;
  readonly env?: string[];
  readonly label?: string[];
  readonly timeout?: string;
};

export const registerFork = (program: Cli): void => {
  withCommonOptions(
    program
      .command('fork')
      .description('make sandboxes that begin with the files of a live one as they are now')
      .argument('<sandbox>', 'id of the sandbox')
      .option('-n, --count <n>', 'how many, up to 256', '1')
      .option('--key <key>', 'the same key never makes further forks')
      .option('-m, --memory <MiB>', 'hard memory limit; as the origin when absent')
      .option('-c, --cpus <cores>', 'CPU limit')
      .option('--pids <n>', 'processes and threads')
      .option('--disk <MiB>', 'what it may write')
      .option('--ttl <seconds>', 'life in total')
      .option('--idle <seconds>', 'stop it after this long without a command')
      .option('-e, --env <NAME=VALUE>', 'environment instead of the origin’s; repeatable', collect)
      .option('-l, --label <KEY=VALUE>', 'labels instead of the origin’s; repeatable', collect)
      .option('--timeout <seconds>', 'how long to wait')
      .addHelpText(
        'after',
        '\nPrints the ids as the forks run. What differs from the origin is said by options; the rest is taken over.\n\nExamples:\n  dsec fork sb-0-…\n  dsec fork sb-0-… -n 16 --label branch=try-2\n',
      ),
  ).action((id: string, flags: Flags) => act(flags, (dsec) => fork(dsec, id, flags)));
};

const fork = async (dsec: DsecClient, id: string, flags: Flags): Promise<number> => {
  const group = await dsec.sandbox(id).fork(numberOf('count', flags.count) ?? 1, optionsOf(flags));
  for (const { id: made } of group.sandboxes) await (flags.json ? printJson({ id: made, forkedFrom: id }) : printLine(made));
  for (const { index, error } of group.failures) await complain(`${error.code}: fork ${index}: ${error.message}`);
  const failure = group.failures[0];
  return failure ? ERRORS[failure.error.code].exit : 0;
};

const optionsOf = (flags: Flags): ForkOptions => ({
  key: flags.key as ForkOptions['key'],
  memoryLimitMb: numberOf('memory', flags.memory),
  cpuCoresLimit: numberOf('cpus', flags.cpus),
  pidsLimit: numberOf('pids', flags.pids),
  diskLimitMb: numberOf('disk', flags.disk),
  ttlTotal: numberOf('ttl', flags.ttl),
  ttlRunningStop: numberOf('idle', flags.idle),
  env: pairsOf('env', flags.env),
  labels: pairsOf('label', flags.label),
  timeoutMs: millisecondsOf('timeout', flags.timeout),
});
