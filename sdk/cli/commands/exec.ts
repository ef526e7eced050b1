/** `dsec exec`, `dsec logs` and `dsec ps`: commands in a sandbox. */
import type { Command as Cli } from 'commander';
import { DsecError } from '#bus/errors.ts';
import type { DsecClient } from '../../client.ts';
import type { OutputReader } from '../../exec/output-reader.ts';
import { DEFAULT_DETACH_KEYS, parseDetachKeys } from '../detach-keys.ts';
import { abortedByInterrupt } from '../interrupt.ts';
import { printJson, printLine, printTable, span, write } from '../output.ts';
import { collect, millisecondsOf, pairsOf, wordsOf } from '../parse.ts';
import { type CommonFlags, act, withCommonOptions } from '../session.ts';
import { printResult } from '../print-result.ts';
import { streamCommand } from '../stream-command.ts';
import { assertTerminal, driveTerminal, terminalEnv, terminalSize } from '../terminal-session.ts';

type ExecFlags = CommonFlags & {
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly detachKeys?: string;
  readonly detach?: boolean;
  readonly timeout?: string;
  readonly user?: string;
  readonly cwd?: string;
  readonly env?: string[];
  readonly key?: string;
};

export const registerExec = (program: Cli): void => {
  withCommonOptions(
    program
      .command('exec')
      .description('run a command in a sandbox; its output, its input and its exit code are ours')
      .argument('<sandbox>', 'id of the sandbox')
      .argument('<command...>', 'program and its arguments')
      .option('-i, --interactive', 'pass our stdin to the command')
      .option('-t, --tty', 'run it on a terminal; with -i ours becomes that terminal')
      .option('--detach-keys <keys>', 'keys that leave it running', DEFAULT_DETACH_KEYS)
      .option('-d, --detach', 'print the id of the command and leave it running')
      .option('--timeout <seconds>', 'kill it and everything it started after this long')
      .option('-u, --user <user>', 'name, uid or uid:gid')
      .option('-C, --cwd <path>', 'working directory, absolute')
      .option('-e, --env <KEY=VALUE>', 'environment variable; repeatable', collect)
      .option('--key <key>', 'name of this command: the same key never runs it twice')
      .passThroughOptions()
      .addHelpText(
        'after',
        `
Options come before the id. Exit code: the command's own; 128 + n when signal n ended it; 124 when --timeout was over; 127 and
126 when it does not exist or cannot be run. Ctrl-C sends INT to the command, a second one kills it.

Examples:
  dsec exec sb-0-… -- ls -l /
  dsec exec --timeout 60 -e CI=1 -C /w sb-0-… -- make test
  dsec exec -it sb-0-… -- bash                     as a person; ctrl-p ctrl-q leaves it running
  echo 'print(6*7)' | dsec exec -i sb-0-… -- python3 -
  dsec exec -d sb-0-… -- ./server                  then: dsec logs -f sb-0-… ex-…
`,
      ),
  ).action((id: string, words: string[], flags: ExecFlags) => act(flags, (dsec) => exec(dsec, id, wordsOf(words), flags)));
};

const exec = async (dsec: DsecClient, id: string, words: readonly string[], flags: ExecFlags): Promise<number> => {
  if (words.length === 0) throw DsecError.of('INVALID_ARGUMENT', 'no command is given; write dsec exec SANDBOX -- COMMAND');
  if (flags.detach && flags.interactive)
    throw DsecError.of('INVALID_ARGUMENT', '-d leaves the command alone, so -i has nobody to read our stdin; give one of them');
  if (flags.json && flags.interactive)
    throw DsecError.of('INVALID_ARGUMENT', '--json prints the result at the end, -i passes everything through as it comes; give one of them');
  const detachKeys = parseDetachKeys(flags.detachKeys ?? DEFAULT_DETACH_KEYS);
  if (flags.tty && flags.interactive) assertTerminal();
  const env = { ...(flags.tty ? terminalEnv() : {}), ...pairsOf('env', flags.env) };
  const terminal = flags.tty ? terminalSize() : undefined;
  const options = { env, terminal, cwd: flags.cwd, user: flags.user, key: flags.key, timeoutMs: millisecondsOf('timeout', flags.timeout) };
  if (flags.json && !flags.detach) return printResult(id, await abortedByInterrupt((signal) => dsec.sandbox(id).exec(words, { ...options, signal })));
  // somebody may come back to a terminal at any time, so that one is open even when it is left alone
  const stdin = flags.interactive || (flags.tty && flags.detach) ? ('open' as const) : undefined;
  const onFull = flags.tty ? 'roll' : undefined;
  const command = await abortedByInterrupt((signal) => dsec.sandbox(id).start(words, { ...options, stdin, onFull, signal }));
  const interactive = flags.interactive === true;
  if (!flags.detach) return flags.tty ? driveTerminal(command, { interactive, detachKeys }) : streamCommand(command, { interactive });
  await (flags.json ? printJson({ sandboxId: command.sandboxId, execId: command.execId, key: command.key }) : printLine(command.execId));
  return 0;
};

type LogsFlags = CommonFlags & { readonly follow?: boolean; readonly stream?: string; readonly offset?: string };

export const registerLogs = (program: Cli): void => {
  withCommonOptions(
    program
      .command('logs')
      .description('print what a command has written, byte by byte as it did')
      .argument('<sandbox>', 'id of the sandbox')
      .argument('<exec>', 'id of the command; dsec ps lists them')
      .option('-f, --follow', 'go on until the command has ended')
      .option('--stream <name>', 'only stdout, or only stderr (default: both, each to ours)')
      .addHelpText('after', '\nExamples:\n  dsec logs sb-0-… ex-…\n  dsec logs -f --stream stderr sb-0-… ex-…\n'),
  ).action((id: string, execId: string, flags: LogsFlags) => act(flags, (dsec) => logs(dsec, id, execId, flags)));
};

const logs = async (dsec: DsecClient, id: string, execId: string, { follow, stream, json }: LogsFlags): Promise<number> => {
  if (stream !== undefined && stream !== 'stdout' && stream !== 'stderr') throw DsecError.of('INVALID_ARGUMENT', '--stream: must be stdout or stderr');
  const command = dsec.attach(id, execId);
  await command.view(); // an unknown id is told before anything is printed
  const copy = async (name: 'stdout' | 'stderr'): Promise<void> => {
    if (stream !== undefined && stream !== name) return;
    const reader: OutputReader = command[name].with({ until: follow ? 'command' : 'now' });
    if (json) for await (const text of reader.text()) await printJson({ stream: name, text });
    else for await (const chunk of reader) await write(process[name], chunk);
  };
  await Promise.all([copy('stdout'), copy('stderr')]);
  return 0;
};

export const registerPs = (program: Cli): void => {
  withCommonOptions(
    program
      .command('ps')
      .description('list the commands of a sandbox, running and ended')
      .argument('<sandbox>', 'id of the sandbox')
      .addHelpText('after', '\nExamples:\n  dsec ps sb-0-…\n  dsec ps --json sb-0-… | jq -r \'select(.state == "running").execId\'\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const commands = await dsec.sandbox(id).commands();
      if (flags.json) for (const command of commands) await printJson(command);
      else {
        const now = Date.now();
        const rows = commands.map((c) => [
          c.execId,
          c.state,
          c.exitCode,
          c.reason,
          span((c.endedAt ?? now) - c.startedAt),
          c.stdout.totalBytes,
          c.stderr.totalBytes,
        ]);
        await printTable(['EXEC', 'STATE', 'EXIT', 'REASON', 'TIME', 'STDOUT', 'STDERR'], rows);
      }
      return 0;
    }),
  );
};
