/** `dsec run`: makes sandboxes, and may run one command in each. */
import type { Command as Cli } from 'commander';
import { DsecError, ERRORS } from '#bus/errors.ts';
import { ClientKey } from '#bus/ids.ts';
import type { DsecClient } from '../../client.ts';
import { forEachLimited } from '../../concurrency.ts';
import type { ExecOptions } from '../../exec/exec-options.ts';
import type { ExecResult } from '../../exec/exec-result.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { GroupOptions } from '../../create/run.ts';
import { Group } from '../../group.ts';
import type { RunOptions, WaitOptions } from '../../run-options.ts';
import type { Sandbox } from '../../sandbox.ts';
import { CreateInterrupt } from '../create-interrupt.ts';
import { abortedByInterrupt } from '../interrupt.ts';
import { CLI_LIMITS } from '../limits.ts';
import { complain, printJson, printLine, printTable } from '../output.ts';
import { collect, millisecondsOf, numberOf, pairsOf, wordsOf } from '../parse.ts';
import { act, type CommonFlags, report, withCommonOptions } from '../session.ts';
import { printResult } from '../print-result.ts';
import { exitCodeOf, streamCommand } from '../stream-command.ts';
import { assertTerminal, driveTerminal, terminalEnv, terminalSize } from '../terminal-session.ts';

type Flags = CommonFlags & {
  readonly workspace?: string[];
  readonly toolkit?: string[];
  readonly memory?: string;
  readonly cpus?: string;
  readonly pids?: string;
  readonly disk?: string;
  readonly swap?: string;
  readonly cpuWeight?: string;
  readonly openFiles?: string;
  readonly outputLimit?: string;
  readonly ttl?: string;
  readonly ttlRunning?: string;
  readonly idle?: string;
  readonly idlePause?: string;
  readonly allow?: string[];
  readonly deny?: string[];
  readonly user?: string;
  readonly env?: string[];
  readonly label?: string[];
  readonly hostname?: string;
  readonly backend?: string;
  readonly key?: string;
  readonly count: string;
  readonly allOrNothing?: boolean;
  readonly require?: string[];
  readonly isolation?: string;
  readonly createTimeout?: string;
  readonly timeout?: string;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly keep?: boolean;
  readonly rm?: boolean;
};

export const registerRun = (program: Cli): void => {
  const command = program
    .command('run')
    .description('make a sandbox and, when a command follows, run it there and stop the sandbox afterwards')
    .argument('<image>', 'base layer, by name or sha256:<digest>; @NAME for a snapshot')
    .argument('[command...]', 'program and its arguments')
    .option('-w, --workspace <layer>', 'layer above the base; repeatable, lowest first', collect)
    .option('-t, --toolkit <layer>', 'layer above the workspaces; repeatable, lowest first', collect)
    .option('-m, --memory <MiB>', 'hard memory limit')
    .option('-c, --cpus <cores>', 'CPU limit, such as 0.5')
    .option('--pids <n>', 'limit of processes and threads')
    .option('--disk <MiB>', 'limit of what it may write')
    .option('--swap <MiB>', 'swap beside the memory')
    .option('--cpu-weight <n>', 'share of a busy node, 1 to 10000; 100 is usual')
    .option('--open-files <n>', 'files that one process may have open')
    .option('--output-limit <bytes>', 'output kept of each stream of a command')
    .option('--ttl <seconds>', 'life in total, from creation')
    .option('--ttl-running <seconds>', 'how long it may run without a pause')
    .option('--idle <seconds>', 'stop it after this long without a command')
    .option('--idle-pause <seconds>', 'pause it after this long without a command; the next one resumes it')
    .option('--allow <destination>', 'network destination that may be reached; repeatable', collect)
    .option('--deny <destination>', 'network destination that may not be reached; repeatable', collect)
    .option('-u, --user <user>', 'user that commands run as: name, uid or uid:gid')
    .option('-e, --env <KEY=VALUE>', 'environment variable; repeatable', collect)
    .option('-l, --label <KEY=VALUE>', 'label to find it by; repeatable', collect)
    .option('--hostname <name>', 'host name inside')
    .option('--backend <name>', 'container, microvm, vm or fncall')
    .option('--key <key>', 'name of this create: the same key never makes a second sandbox')
    .option('-n, --count <n>', 'make this many equal sandboxes, up to 32768, in one request', '1')
    .option('--all-or-nothing', 'start none of them before every one has its place; otherwise as many as fit')
    .option('--require <KEY=VALUE>', 'label that the node must have; repeatable', collect)
    .option('--isolation <how>', 'shared, preferApart or requireApart: whether other projects may be on the node')
    .option('--create-timeout <seconds>', 'how long to wait until it runs')
    .option('--timeout <seconds>', 'time limit of the command')
    .option('-i, --interactive', 'pass our stdin to the command')
    .option('--tty', 'run the command on a terminal; with -i ours becomes that terminal')
    .option('--keep', 'leave the sandbox running after the command')
    .option('--rm', 'after the command also forget the record of the sandbox')
    .passThroughOptions()
    .addHelpText('after', EXAMPLES)
    .action((image: string, words: string[], flags: Flags) => act(flags, (dsec) => run(dsec, image, wordsOf(words), flags)));
  withCommonOptions(command);
};

const EXAMPLES = `
Options come before the image; what follows it is the command. Exit code: the command's own, 124 when --timeout was over,
else by the error's code. --json prints one document per sandbox in place of the output.

Examples:
  dsec run debian                                    prints the id of a new sandbox
  dsec run debian -- sh -c 'echo hello world'        runs it and stops the sandbox
  dsec run --keep -m 4096 -c 4 --idle 300 --allow pypi -w repo debian -- make test
  dsec run -n 32 --label job=nightly debian          32 sandboxes; find them with dsec ls --label job=nightly
  dsec run -n 8000 --all-or-nothing debian           8000 of them, or none
  dsec run -i --tty debian -- bash                   a shell in a sandbox of its own, stopped afterwards
  tar c . | dsec run -i debian -- tar t              with our stdin
`;

const run = async (dsec: DsecClient, image: string, words: readonly string[], flags: Flags): Promise<number> => {
  checkFlags(words, flags);
  const group = await create(dsec, image, flags);
  const only = group.sandboxes.length === 1 && group.items.length === 1 ? group.sandboxes[0] : undefined;
  if (only && words.length > 0) return runOne(only, words, flags);
  const code = words.length > 0 ? await runInEach(group, words, flags) : await printIds(group.sandboxes, flags);
  for (const { index, error } of group.failures) await complain(`${error.code}: ${group.items.length > 1 ? `sandbox ${index}: ` : ''}${error.message}`);
  const failure = group.failures[0];
  return failure ? ERRORS[failure.error.code].exit : code;
};

const checkFlags = (words: readonly string[], flags: Flags): void => {
  if (words.length === 0 && (flags.rm || flags.keep || flags.interactive || flags.tty || flags.timeout !== undefined))
    throw DsecError.of('INVALID_ARGUMENT', '--rm, --keep, -i, --tty and --timeout belong to a command; add one: dsec run [options] IMAGE -- COMMAND');
  if (flags.rm && flags.keep) throw DsecError.of('INVALID_ARGUMENT', '--rm and --keep contradict each other; give one of them');
  if (flags.interactive && (flags.json || flags.count !== '1'))
    throw DsecError.of('INVALID_ARGUMENT', '-i passes our stdin to one command and its output through; leave --json and --count away');
  if (flags.tty && (flags.json || flags.count !== '1'))
    throw DsecError.of('INVALID_ARGUMENT', '--tty shows the terminal of one command; leave --json and --count away');
  if (flags.tty && flags.interactive) assertTerminal();
};

/** What an interrupted create has made is ended again: nobody knows its ids yet. */
const create = async (dsec: DsecClient, image: string, flags: Flags): Promise<Group> => {
  const options = optionsOf(image, flags);
  const timeoutMs = millisecondsOf('create-timeout', flags.createTimeout);
  const count = numberOf('count', flags.count) ?? 1;
  const interrupt = new CreateInterrupt();
  try {
    const wait = { timeoutMs, signal: interrupt.signal };
    const mode = flags.allOrNothing ? 'allOrNothing' : 'asManyAsFit';
    const group =
      count === 1 && !flags.allOrNothing
        ? await createOne(dsec, options, wait)
        : await dsec.runContainers(options, { ...wait, count, mode, onItem: progressOf(count, flags) });
    if (!interrupt.happened) return group;
    await group.stopAll();
    throw DsecError.of('CANCELLED', `interrupted; the ${group.sandboxes.length} sandboxes made so far are stopped`, { outcome: 'not_applied' });
  } finally {
    interrupt.stop();
  }
};

/** On a terminal, how far a group has come; a line of its own that the next one replaces. */
const progressOf = (count: number, { json }: Flags): GroupOptions['onItem'] => {
  if (json || !process.stderr.isTTY || count <= WIRE_LIMITS.maxCreatesPerMessage) return undefined;
  let shown = -1;
  return (_, { running, failed, total }) => {
    const percent = Math.floor(((running + failed) / total) * 100);
    if (percent === shown) return;
    shown = percent;
    const failures = failed > 0 ? `, ${failed} failed` : '';
    process.stderr.write(`\r${running} of ${total} run${failures}${percent === 100 ? '\n' : ''}`);
  };
};

/** Under the very key that was given, as every other client would. */
const createOne = async (dsec: DsecClient, options: RunOptions, wait: WaitOptions): Promise<Group> => {
  const sandbox = await dsec.runContainer(options, wait);
  return new Group(ClientKey.parse(options.key ?? sandbox.id), [{ index: 0, sandbox }]);
};

const optionsOf = (image: string, flags: Flags): RunOptions => {
  const rules = [...(flags.allow ?? []).map((name) => [name, true] as const), ...(flags.deny ?? []).map((name) => [name, false] as const)];
  return {
    image: image.startsWith('@') ? { snapshot: image.slice(1) } : image,
    workspaces: flags.workspace,
    toolkits: flags.toolkit,
    memoryLimitMb: numberOf('memory', flags.memory),
    cpuCoresLimit: numberOf('cpus', flags.cpus),
    pidsLimit: numberOf('pids', flags.pids),
    diskLimitMb: numberOf('disk', flags.disk),
    swapLimitMb: numberOf('swap', flags.swap),
    cpuWeight: numberOf('cpu-weight', flags.cpuWeight),
    openFilesLimit: numberOf('open-files', flags.openFiles),
    outputLimitBytes: numberOf('output-limit', flags.outputLimit),
    ttlTotal: numberOf('ttl', flags.ttl),
    ttlRunning: numberOf('ttl-running', flags.ttlRunning),
    ttlRunningStop: numberOf('idle', flags.idle),
    ttlRunningPause: numberOf('idle-pause', flags.idlePause),
    networkRules: rules.length > 0 ? Object.fromEntries(rules) : undefined,
    initUser: flags.user,
    env: pairsOf('env', flags.env),
    labels: pairsOf('label', flags.label),
    require: pairsOf('require', flags.require),
    isolation: flags.isolation as RunOptions['isolation'],
    hostname: flags.hostname,
    backend: flags.backend as RunOptions['backend'],
    key: flags.key as RunOptions['key'],
  };
};

const printIds = async (sandboxes: readonly Sandbox[], flags: Flags): Promise<number> => {
  for (const sandbox of sandboxes) await (flags.json ? printJson(sandbox.state ?? { id: sandbox.id }) : printLine(sandbox.id));
  return 0;
};

const runOne = async (sandbox: Sandbox, words: readonly string[], flags: Flags): Promise<number> => {
  const timeoutMs = millisecondsOf('timeout', flags.timeout);
  try {
    if (flags.json) return await printResult(sandbox.id, await abortedByInterrupt((signal) => sandbox.exec(words, { timeoutMs, signal })));
    const interactive = flags.interactive === true;
    const stdin = interactive ? ('open' as const) : undefined;
    const terminal = flags.tty ? { terminal: terminalSize(), env: terminalEnv(), onFull: 'roll' as const } : {};
    const command = await abortedByInterrupt((signal) => sandbox.start(words, { timeoutMs, stdin, ...terminal, signal }));
    if (!flags.tty) return await streamCommand(command, { interactive });
    return await driveTerminal(command, { interactive, detachKeys: new Uint8Array(0) });
  } finally {
    await end(sandbox, flags);
  }
};

const runInEach = async (group: Group, words: readonly string[], flags: Flags): Promise<number> => {
  const options: ExecOptions = { timeoutMs: millisecondsOf('timeout', flags.timeout) };
  const rows: unknown[][] = [];
  let worst = 0;
  const runIn = async (sandbox: Sandbox, signal: AbortSignal): Promise<void> => {
    try {
      const result = await sandbox.exec(words, { ...options, signal });
      worst = Math.max(worst, flags.json ? await printResult(sandbox.id, result) : await exitCodeOf(result));
      rows.push([sandbox.id, result.exitCode, result.reason, lastLine(result)]);
    } catch (thrown) {
      worst = Math.max(worst, await report(thrown));
    } finally {
      await end(sandbox, flags);
    }
  };
  await abortedByInterrupt((signal) => forEachLimited(group.sandboxes, CLI_LIMITS.commandsAtOnce, (sandbox) => runIn(sandbox, signal)));
  if (!flags.json) await printTable(['SANDBOX', 'EXIT', 'REASON', 'LAST LINE'], rows);
  return worst;
};

const lastLine = (result: ExecResult): string => result.stdout.trimEnd().split('\n').at(-1) ?? '';

const end = async (sandbox: Sandbox, flags: Flags): Promise<void> => {
  if (flags.keep) await complain(`sandbox ${sandbox.id} goes on; end it with dsec stop ${sandbox.id}`);
  else await (flags.rm ? sandbox.delete() : sandbox.stop());
};
