/** `dsec stop` and `dsec delete`: one life-cycle command to many sandboxes. */
import type { Command as Cli } from 'commander';
import { SANDBOX_STATUSES, type SandboxStatus } from '#bus/sandbox/state.ts';
import type { DsecClient } from '../../client.ts';
import { forEachLimited } from '../../concurrency.ts';
import type { Sandbox } from '../../sandbox.ts';
import type { SettleOptions } from '../../transition.ts';
import { type ChoiceFlags, choiceOf, withChoice } from '../choice.ts';
import { CLI_LIMITS } from '../limits.ts';
import { printJson, printLine } from '../output.ts';
import { millisecondsOf } from '../parse.ts';
import { act, report } from '../session.ts';

type Verb = {
  readonly name: 'stop' | 'delete';
  readonly past: string;
  readonly description: string;
  /** States that `--all` and `--label` pick. */
  readonly from: readonly SandboxStatus[];
};

const NOT_ENDED = SANDBOX_STATUSES.filter((status) => status !== 'stopped' && status !== 'failed');
const VERBS: readonly Verb[] = [
  { name: 'stop', past: 'stopped', description: 'end sandboxes and everything in them', from: NOT_ENDED },
  { name: 'delete', past: 'deleted', description: 'end sandboxes and forget their records', from: SANDBOX_STATUSES },
];

export const registerLifecycle = (program: Cli): void => {
  for (const verb of VERBS) registerVerb(program, verb);
};

const registerVerb = (program: Cli, verb: Verb): void => {
  withChoice(program.command(verb.name).description(verb.description), 'how long to wait for each')
    .addHelpText(
      'after',
      `\nRepeating it is harmless. Prints each id when it is ${verb.past}; goes on after a failure and ends with its exit code.\n\nExamples:\n  dsec ${verb.name} sb-0-…\n  dsec ${verb.name} --label job=nightly\n  dsec ${verb.name} --all --no-wait\n`,
    )
    .action((ids: string[], flags: ChoiceFlags) => act(flags, (dsec) => apply(dsec, verb, ids, flags)));
};

const apply = async (dsec: DsecClient, verb: Verb, ids: readonly string[], flags: ChoiceFlags): Promise<number> => {
  const options: SettleOptions = { wait: flags.wait, timeoutMs: millisecondsOf('timeout', flags.timeout) };
  const sandboxes = await chosen(dsec, verb, ids, flags);
  let code = 0;
  await forEachLimited(sandboxes, CLI_LIMITS.sandboxesAtOnce, async (sandbox) => {
    try {
      await sandbox[verb.name](options);
    } catch (thrown) {
      const exit = await report(thrown);
      code ||= exit;
      return;
    }
    await (flags.json ? printJson({ id: sandbox.id, done: flags.wait ? verb.past : 'stored' }) : printLine(sandbox.id));
  });
  return code;
};

const chosen = async (dsec: DsecClient, verb: Verb, ids: readonly string[], flags: ChoiceFlags): Promise<readonly Sandbox[]> => {
  const choice = choiceOf(verb.name, ids, flags);
  if ('ids' in choice) return choice.ids.map((id) => dsec.sandbox(id));
  const found: Sandbox[] = [];
  for await (const sandbox of dsec.list({ labels: choice.labels, status: verb.from, pageSize: 500 })) found.push(sandbox);
  return found;
};
