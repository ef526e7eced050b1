/** `dsec pause` and `dsec resume`: one sandbox or thousands, each told of as it gets there. @paper §6.3 */
import type { Command as Cli } from 'commander';
import type { DsecClient } from '../../client.ts';
import type { ManyResult } from '../../many.ts';
import { type ChoiceFlags, choiceOf, withChoice } from '../choice.ts';
import { CLI_LIMITS } from '../limits.ts';
import { complain, printJson, printLine } from '../output.ts';
import { millisecondsOf } from '../parse.ts';
import { act, report } from '../session.ts';

type Verb = { readonly name: 'pause' | 'resume'; readonly past: string; readonly description: string; readonly note: string };

const VERBS: readonly Verb[] = [
  {
    name: 'pause',
    past: 'paused',
    description: 'let sandboxes rest and give their memory back; the next command in one resumes it',
    note: 'What runs in them stands still, time-outs of commands and the running life too; the total life goes on.',
  },
  { name: 'resume', past: 'resumed', description: 'let paused sandboxes go on', note: 'Seldom needed: any command in a paused sandbox resumes it first.' },
];

export const registerRest = (program: Cli): void => {
  for (const verb of VERBS)
    withChoice(program.command(verb.name).description(verb.description), 'how long to wait for all of them')
      .addHelpText(
        'after',
        `\n${verb.note} Repeating it is harmless. Prints each id when it is ${verb.past}, says how far it is every\n${CLI_LIMITS.progressMs / 1_000} seconds, goes on after a failure and ends with its exit code. Interrupted, what was sent goes on.\n\nExamples:\n  dsec ${verb.name} sb-0-…\n  dsec ${verb.name} --label job=nightly\n  dsec ${verb.name} --all --json | jq -r 'select(.error).id'\n`,
      )
      .action((ids: string[], flags: ChoiceFlags) => act(flags, (dsec) => apply(dsec, verb, ids, flags)));
};

const apply = async (dsec: DsecClient, verb: Verb, ids: readonly string[], flags: ChoiceFlags): Promise<number> => {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once('SIGINT', interrupt);
  const count = { done: 0, failed: 0, givenBackMiB: 0 };
  const said = (): string => `${count.done} ${flags.wait ? verb.past : 'told'}, ${count.failed} failed${given(verb, count.givenBackMiB)}`;
  const ticker = setInterval(() => void complain(`${said()} so far`).catch(() => {}), CLI_LIMITS.progressMs);
  let code = 0;
  try {
    const chosen = choiceOf(verb.name, ids, flags);
    const options = { wait: flags.wait, timeoutMs: millisecondsOf('timeout', flags.timeout), signal: stop.signal };
    const many = verb.name === 'pause' ? dsec.pauseMany(chosen, options) : dsec.resumeMany(chosen, options);
    for await (const result of many) {
      count.givenBackMiB += result.state?.memoryGivenBackMiB ?? 0;
      count[result.error ? 'failed' : 'done'] += 1;
      const exit = await print(result, verb, flags);
      code ||= exit;
    }
  } finally {
    clearInterval(ticker);
    process.off('SIGINT', interrupt);
  }
  if (count.done + count.failed > 1) await complain(said());
  return code;
};

const given = (verb: Verb, mib: number): string => (verb.name === 'pause' && mib > 0 ? `, ${mib} MiB given back` : '');

const print = async ({ id, state, error }: ManyResult, verb: Verb, flags: ChoiceFlags): Promise<number> => {
  if (flags.json) {
    const { memoryGivenBackMiB } = state ?? {};
    await printJson({ id, ...(error ? { error: error.toWire() } : { done: flags.wait ? verb.past : 'stored', memoryGivenBackMiB }) });
  } else if (!error) await printLine(id);
  return error ? report(error) : 0;
};
