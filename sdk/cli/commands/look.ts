/** `dsec ls`, `dsec get` and `dsec events`: looking changes nothing and never extends a life. */
import type { Command as Cli } from 'commander';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { pairs, printJson, printLine, printTable, span, TablePrinter, time } from '../output.ts';
import { collect, pairsOf, statusesOf } from '../parse.ts';
import { type CommonFlags, act, withCommonOptions } from '../session.ts';

type LsFlags = CommonFlags & { readonly label?: string[]; readonly status?: string[]; readonly quiet?: boolean };

export const registerLs = (program: Cli): void => {
  withCommonOptions(
    program
      .command('ls')
      .description('list the sandboxes of the project')
      .option('-l, --label <KEY=VALUE>', 'only those with this label; repeatable, all must match', collect)
      .option('-s, --status <status>', 'only those in this state; repeatable, any may match', collect)
      .option('-q, --quiet', 'print ids only')
      .addHelpText(
        'after',
        '\nExamples:\n  dsec ls\n  dsec ls --label job=nightly --status running\n  dsec ls -q --status failed\n  dsec ls --json | jq -r .spec.image\n',
      ),
  ).action((flags: LsFlags) =>
    act(flags, async (dsec) => {
      const table = new TablePrinter(flags.quiet ? [] : ['SANDBOX', 'STATUS', 'IMAGE', 'AGE', 'LABELS']);
      const chosen = { labels: pairsOf('label', flags.label), status: statusesOf('status', flags.status), pageSize: 500 };
      for await (const { state } of dsec.list(chosen)) {
        if (!state) continue;
        if (flags.json) await printJson(state);
        else if (flags.quiet) await printLine(state.id);
        else await table.add([state.id, statusOf(state), state.spec.image, span(Date.now() - state.createdAt), pairs(state.spec.labels)]);
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};

/** A paused one says what its pause gave back. */
const statusOf = ({ status, memoryGivenBackMiB: mib }: SandboxState): string => (mib === null ? status : `${status} -${mib} MiB`);

export const registerGet = (program: Cli): void => {
  withCommonOptions(
    program
      .command('get')
      .description('show one sandbox')
      .argument('<sandbox>', 'id of the sandbox')
      .addHelpText('after', '\nExamples:\n  dsec get sb-0-…\n  dsec get --json sb-0-… | jq .spec.limits\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      const state = await (await dsec.get(id)).refresh();
      await (flags.json ? printJson(state) : printTable(['SANDBOX', state.id], fieldsOf(state)));
      return 0;
    }),
  );
};

const fieldsOf = (s: SandboxState): readonly (readonly unknown[])[] => [
  ['status', s.status],
  ...(s.pauseReason ? [['paused because', s.pauseReason === 'idle' ? 'nobody used it' : 'it was asked for']] : []),
  ...(s.memoryGivenBackMiB === null ? [] : [['memory given back', `${s.memoryGivenBackMiB} MiB`]]),
  ...(s.failure ? [['failure', `${s.failure.code}: ${s.failure.message}`]] : []),
  ...(s.stopReason ? [['stop reason', s.stopReason]] : []),
  ['image', s.spec.image],
  ['layers', s.spec.layers.length],
  ['backend', s.spec.backend],
  ['node', s.edge],
  ...limitsOf(s.spec.limits),
  ['user', s.spec.initUser],
  ['hostname', s.spec.hostname],
  [
    'network',
    pairs(Object.fromEntries(Object.entries(s.spec.networkRules).map(([name, allowed]) => [name, allowed ? 'allow' : 'deny']))) || 'nothing is reachable',
  ],
  ['labels', pairs(s.spec.labels) || '-'],
  ['created', time(s.createdAt)],
  ['started', time(s.startedAt)],
  ['ended', time(s.endedAt)],
  ['total life ends', time(s.totalDeadlineAt)],
  ['running life', lifeOf(s.spec.lives.runningMs, s.runningDeadlineAt)],
  ['paused when idle for', s.spec.lives.idlePauseMs === null ? 'never' : span(s.spec.lives.idlePauseMs)],
  ['idle life', lifeOf(s.spec.lives.idleMs, null)],
  ...(s.snapshots.length > 0 ? [['snapshots', s.snapshots.map(({ id }) => id).join(', ')]] : []),
];

const limitsOf = (l: SandboxState['spec']['limits']): readonly (readonly unknown[])[] => [
  ['memory', `${l.memoryMiB} MiB, ${l.swapMiB === 0 ? 'no' : `${l.swapMiB} MiB of`} swap`],
  ['cpus', `${l.cpuMillis / 1_000}, weight ${l.cpuWeight}`],
  ['pids', l.pids],
  ['disk', l.diskMiB === null ? 'what the node has free' : `${l.diskMiB} MiB`],
  ['open files', l.openFiles ?? 'what the node gives'],
  ['output', `${l.outputBytes} bytes per stream of a command`],
];

const lifeOf = (lifeMs: number | null, endsAt: number | null): string =>
  lifeMs === null ? 'none' : endsAt === null ? span(lifeMs) : `${span(lifeMs)}, ends ${time(endsAt)}`;

type EventsFlags = CommonFlags & { readonly follow?: boolean };

export const registerEvents = (program: Cli): void => {
  withCommonOptions(
    program
      .command('events')
      .description('show the commits of a sandbox: what happened, and the state that each led to')
      .argument('<sandbox>', 'id of the sandbox')
      .option('-f, --follow', 'go on until the sandbox has ended')
      .addHelpText('after', '\nExamples:\n  dsec events sb-0-…\n  dsec events -f --json sb-0-… | jq -c "[.version, .state.status]"\n'),
  ).action((id: string, flags: EventsFlags) =>
    act(flags, async (dsec) => {
      const table = new TablePrinter(['VERSION', 'TIME', 'EVENTS', 'STATE', 'BY']);
      for await (const commit of dsec.sandbox(id).events({ follow: flags.follow })) {
        if (flags.json) await printJson(commit);
        else await table.add([commit.version, time(commit.at), commit.events.map((event) => event.type).join(' '), commit.state['status'], commit.principal]);
        if (flags.follow && !flags.json) await table.flush();
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};
