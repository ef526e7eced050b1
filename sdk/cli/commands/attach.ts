/** `dsec attach`, `dsec wait` and `dsec kill`: commands that run already. */
import type { Command as Cli } from 'commander';
import { DsecError } from '#bus/errors.ts';
import { type ExecView, SignalName } from '#bus/op/schema.ts';
import type { DsecClient } from '../../client.ts';
import type { Command } from '../../exec/command.ts';
import { DEFAULT_DETACH_KEYS, parseDetachKeys } from '../detach-keys.ts';
import { CLI_LIMITS } from '../limits.ts';
import { printJson } from '../output.ts';
import { printResult } from '../print-result.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';
import { exitCodeOf, streamCommand } from '../stream-command.ts';
import { assertTerminal, driveTerminal, terminalSize } from '../terminal-session.ts';

const withTarget = (command: Cli): Cli =>
  withCommonOptions(command.argument('<sandbox>', 'id of the sandbox').argument('<exec>', 'id of the command; dsec ps lists them'));

type AttachFlags = CommonFlags & { readonly interactive?: boolean; readonly detachKeys: string };

export const registerAttach = (program: Cli): void => {
  withTarget(
    program
      .command('attach')
      .description('take up a running command: its output, our input when it takes any, and its exit code')
      .option('-i, --interactive', 'pass our stdin to the command')
      .option('--detach-keys <keys>', 'keys that leave a terminal running', DEFAULT_DETACH_KEYS),
  )
    .addHelpText(
      'after',
      '\nExamples:\n  dsec attach sb-0-… ex-…          every byte of its output, from the first\n  dsec attach -i sb-0-… ex-…       a terminal, where it was left\n',
    )
    .action((id: string, execId: string, flags: AttachFlags) => act(flags, (dsec) => attach(dsec.attach(id, execId), flags)));
};

const attach = async (command: Command, flags: AttachFlags): Promise<number> => {
  const interactive = flags.interactive === true;
  const detachKeys = parseDetachKeys(flags.detachKeys);
  const view = await command.view();
  if (!view.terminal) return streamCommand(command, { interactive });
  if (interactive) assertTerminal();
  if (view.state === 'running') await redraw(command);
  return driveTerminal(command, { interactive, detachKeys, offset: tailOf(view) });
};

const tailOf = ({ stdout }: ExecView): number => Math.max(stdout.discardedBytes, stdout.storedBytes - CLI_LIMITS.attachTailBytes);

/** Programs that fill the screen draw it anew when its size changes: so it does, also when ours is the same as before. */
const redraw = async (command: Command): Promise<void> => {
  const { rows, columns } = terminalSize();
  await command.resize({ rows: rows + 1, columns });
  await command.resize({ rows, columns });
};

export const registerWait = (program: Cli): void => {
  withTarget(program.command('wait').description('wait for the end of a command; its exit code is ours'))
    .addHelpText('after', '\nExamples:\n  dsec wait sb-0-… ex-… && echo well done\n')
    .action((id: string, execId: string, flags: CommonFlags) => act(flags, (dsec) => wait(dsec, id, execId, flags)));
};

const wait = async (dsec: DsecClient, id: string, execId: string, { json }: CommonFlags): Promise<number> => {
  const command = dsec.attach(id, execId);
  return json ? printResult(id, await command.result()) : exitCodeOf(await command.wait());
};

type KillFlags = CommonFlags & { readonly signal?: string };

export const registerKill = (program: Cli): void => {
  withTarget(
    program
      .command('kill')
      .description('kill a command with everything it started, or send it a signal')
      .option('-s, --signal <name>', 'only this signal, and only to the command itself: TERM, INT, HUP, …'),
  )
    .addHelpText('after', '\nExit code: 0 when something was there to get it, else 1.\n\nExamples:\n  dsec kill sb-0-… ex-…\n  dsec kill -s TERM sb-0-… ex-…\n')
    .action((id: string, execId: string, flags: KillFlags) => act(flags, (dsec) => kill(dsec.attach(id, execId), flags)));
};

const kill = async (command: Command, { signal, json }: KillFlags): Promise<number> => {
  const delivered = signal === undefined ? await command.kill() : await command.signal(signalOf(signal));
  if (json) await printJson({ sandboxId: command.sandboxId, execId: command.execId, delivered });
  return delivered ? 0 : 1;
};

const signalOf = (text: string): SignalName => {
  const name = SignalName.safeParse(text.toUpperCase().replace(/^SIG/, ''));
  if (!name.success)
    throw DsecError.of('INVALID_ARGUMENT', `--signal: ${JSON.stringify(text.slice(0, 20))} is no signal; known: ${SignalName.options.join(', ')}`);
  return name.data;
};
