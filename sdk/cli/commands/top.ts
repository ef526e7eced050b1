/** `dsec top`: the fleet, live in the terminal. The terminal is given back whichever way it ends. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Command as Cli } from 'commander';
import { DsecError } from '#bus/errors.ts';
import type { Fleet } from '../../admin.ts';
import type { DsecClient } from '../../client.ts';
import { CLI_LIMITS } from '../limits.ts';
import { printJson, printLine, printable, write } from '../output.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';
import { topScreen } from '../top-screen.ts';

type TopFlags = CommonFlags & { readonly once?: boolean };

export const registerTop = (program: Cli): void => {
  withCommonOptions(
    program
      .command('top')
      .description('watch the fleet: nodes, what they hold, creates and rejections per second; for operators of the first project')
      .option('--once', 'print it once, and end')
      .addHelpText(
        'after',
        '\nShows what each node has reserved for sandboxes of what it offers, refreshed each second; Ctrl-C ends it. Without a terminal, and with\n' +
          '--json, each refresh is printed below the last: one document per line.\n' +
          '\nExamples:\n  dsec top\n  dsec top --once\n  dsec top --once --json | jq -r \'.edges[] | select(.health != "healthy") | .edge\'\n',
      ),
  ).action((flags: TopFlags) =>
    act(flags, async (dsec) => {
      if (flags.once) await printFleet(await dsec.admin.fleet(), flags);
      else if (flags.json || !process.stdout.isTTY) await printForEver(dsec, flags);
      else await showForEver(dsec);
      return 0;
    }),
  );
};

const printFleet = (fleet: Fleet, { json }: TopFlags): Promise<void> => (json ? printJson(fleet) : printLine(topScreen(fleet, undefined).join('\n')));

const printForEver = async (dsec: DsecClient, flags: TopFlags): Promise<void> => {
  const { signal, stop } = untilInterrupted();
  try {
    while (!signal.aborted) {
      await printFleet(await dsec.admin.fleet(), flags);
      await rest(signal);
    }
  } finally {
    stop();
  }
};

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const END_OF_LINE = '\u001b[K';
const BELOW = '\u001b[J';

/** On the terminal's other screen, drawn over itself. What passes by itself is told on the screen; anything else ends the command. */
const showForEver = async (dsec: DsecClient): Promise<void> => {
  const { signal, stop } = untilInterrupted();
  let fleet: Fleet | undefined;
  let note = '';
  const draw = (): void => {
    if (fleet) process.stdout.write(`${HOME}${topScreen(fleet, sizeNow(), note).join(`${END_OF_LINE}\n`)}${END_OF_LINE}${BELOW}`);
  };
  const restore = (): void => void process.stdout.write(LEAVE);
  fleet = await dsec.admin.fleet(); // who may not look is told so on the ordinary screen
  process.once('exit', restore);
  await write(process.stdout, ENTER);
  process.stdout.on('resize', draw);
  try {
    while (!signal.aborted) {
      draw();
      await rest(signal);
      if (signal.aborted) break;
      const news = await dsec.admin.fleet().catch((thrown: unknown) => noteOf(thrown));
      note = typeof news === 'string' ? news : '';
      if (typeof news !== 'string') fleet = news;
    }
  } finally {
    stop();
    process.stdout.off('resize', draw);
    process.off('exit', restore);
    await write(process.stdout, LEAVE);
  }
};

const noteOf = (thrown: unknown): string => {
  if (!(thrown instanceof DsecError) || thrown.retry === 'never') throw thrown;
  return `not refreshed: ${printable(`${thrown.code}: ${thrown.message}`)}`;
};

const sizeNow = () => ({ columns: process.stdout.columns || CLI_LIMITS.terminalColumns, rows: process.stdout.rows || CLI_LIMITS.terminalRows });

const rest = (signal: AbortSignal): Promise<void> => delay(CLI_LIMITS.topRefreshMs, undefined, { signal }).catch(() => {});

const untilInterrupted = () => {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
  return {
    signal: ended.signal,
    stop: () => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, end);
    },
  };
};
