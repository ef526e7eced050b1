/**
 * The frame around every client command: common options, connection, errors as one line with the registry's exit code.
 */
import { type Command, Option } from 'commander';
import { DsecError, ERRORS, toWireError } from '#bus/errors.ts';
import { type DsecClient, connect } from '../client.ts';
import type { WaitNotice } from '../transport/waits.ts';
import { DEFAULT_CONTEXT_FILE } from '../context.ts';
import { OutputClosed, complain } from './output.ts';

export type CommonFlags = { readonly context?: string; readonly project?: string; readonly json?: boolean };

/** What a program ends with when its reader has left: 128 + SIGPIPE. */
export const EXIT_OUTPUT_CLOSED = 141;
const EXIT_BUG = 70;

export const withCommonOptions = (command: Command): Command =>
  command
    .option('--context <file>', `context file of the platform (default: $DSEC_CONTEXT, else ${DEFAULT_CONTEXT_FILE})`)
    .option('--project <name>', 'project to work in (default: the one in the context file)')
    .addOption(new Option('--json', 'print JSON, one document per line'));

/** Runs a command's work with a connected client; resolves when everything is printed and closed. The number is the exit code. */
export const act = async (flags: CommonFlags, work: (dsec: DsecClient) => Promise<number | undefined>): Promise<void> => {
  for (const output of [process.stdout, process.stderr]) output.on('error', ignoreHere);
  try {
    await using dsec = await connect({ contextFile: flags.context, project: flags.project, name: 'dsec-cli', onWait: sayWait });
    process.exitCode = (await work(dsec)) ?? 0;
  } catch (thrown) {
    process.exitCode = await report(thrown);
  } finally {
    for (const output of [process.stdout, process.stderr]) output.off('error', ignoreHere);
  }
};

/** Who looks at a terminal that stands still learns why, and that it goes on by itself. */
const sayWait = ({ state, on, error, waitedMs, givesUpInMs }: WaitNotice): void => {
  const seconds = (ms: number): number => Math.round(ms / 1_000);
  const text =
    state === 'waiting'
      ? `waiting for ${on} for ${seconds(waitedMs)} s: ${error.code}: ${error.message}; asked again for ${seconds(givesUpInMs)} s more`
      : `${on} answers again, after ${seconds(waitedMs)} s`;
  void complain(text).catch(() => {});
};

/** `write` reports it to whoever wrote. */
const ignoreHere = (): void => {};

/** Prints what went wrong and gives the exit code for it. */
export const report = async (thrown: unknown): Promise<number> => {
  if (thrown instanceof OutputClosed) return EXIT_OUTPUT_CLOSED;
  const { code, message } = toWireError(thrown);
  await complain(`${code}: ${message}`).catch(() => {});
  if (process.env['DSEC_DEBUG'] === '1' && thrown instanceof Error) process.stderr.write(`${thrown.stack}\n`);
  return thrown instanceof DsecError ? ERRORS[code].exit : EXIT_BUG;
};
