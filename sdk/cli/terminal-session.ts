/**
 * A command on a terminal of its sandbox, as if our terminal were that one: keys as they are typed, its output as it comes, its
 * size after ours. Our own terminal is as it was before, whichever way this ends.
 */
import { spawnSync } from 'node:child_process';
import { DsecError } from '#bus/errors.ts';
import type { TerminalSize } from '#bus/op/schema.ts';
import type { Command } from '../exec/command.ts';
import { SDK_LIMITS } from '../limits.ts';
import { DetachFilter } from './detach-keys.ts';
import { CLI_LIMITS } from './limits.ts';
import { complain, write } from './output.ts';
import { exitCodeOf } from './stream-command.ts';

export type TerminalOptions = {
  readonly interactive: boolean;
  readonly detachKeys: Uint8Array;
  /** First byte of the output to show. */
  readonly offset?: number;
};

/** Of our own terminal; of an ordinary one when there is none. */
export const terminalSize = (): TerminalSize => ({
  rows: process.stdout.rows || CLI_LIMITS.terminalRows,
  columns: process.stdout.columns || CLI_LIMITS.terminalColumns,
});

/** What our terminal is called, so that programs drive it rightly. */
export const terminalEnv = (): Record<string, string> => ({ TERM: process.env['TERM'] || 'xterm' });

export const assertTerminal = (): void => {
  if (process.stdin.isTTY !== true) throw DsecError.of('INVALID_ARGUMENT', 'a terminal with -i needs one here, and our input is none; leave -t (--tty) away');
};

/** Resolves with the exit code for this process; 0 when the detach keys were typed. */
export const driveTerminal = async (command: Command, options: TerminalOptions): Promise<number> => {
  const restore = options.interactive ? takeTerminal() : () => {};
  const size = new SizeFollower(command);
  const departures = new Departures(command);
  const keys = options.interactive ? new Keys(command, options.detachKeys) : undefined;
  try {
    const shown = show(command, options.offset ?? 0);
    const ended = Promise.all([command.wait(), shown]).then(([end]) => end);
    ended.catch(() => {}); // nobody may be waiting any more
    const end = await Promise.race([ended, departures.left, ...(keys ? [keys.detached] : [])]);
    restore();
    if (typeof end === 'number') return end;
    if (end !== 'detached') return await exitCodeOf(end);
    await complain(`left running; come back with: dsec attach -i ${command.sandboxId} ${command.execId}`);
    return 0;
  } finally {
    restore();
    keys?.stop();
    size.stop();
    departures.stop();
  }
};

/** Raw mode, given back at the latest when this process ends. */
const takeTerminal = (): (() => void) => {
  const { stdin } = process;
  let taken = true;
  const restore = (): void => {
    if (!taken) return;
    taken = false;
    process.off('exit', restore);
    stdin.setRawMode(false);
  };
  process.on('exit', restore);
  stdin.setRawMode(true);
  leaveOutputAlone();
  return restore;
};

/**
 * Node's raw mode still turns line feeds of the output into new lines, which ruins the screens of programs that move down by one.
 * The other terminal has done that already where it should be. Where there is no `stty`, they look as they may.
 */
const leaveOutputAlone = (): void => {
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
};

const show = async (command: Command, offset: number): Promise<void> => {
  for await (const chunk of command.stdout.with({ offset, credit: true, lost: 'skip' })) await write(process.stdout, chunk);
};

/** Our size is its size, from now on. Of many changes in a row only the last is told. */
class SizeFollower {
  readonly #command: Command;
  #telling = false;
  #due = false;
  readonly #onResize = (): void => void this.#tell();

  constructor(command: Command) {
    this.#command = command;
    process.stdout.on('resize', this.#onResize);
  }

  stop(): void {
    process.stdout.off('resize', this.#onResize);
  }

  async #tell(): Promise<void> {
    this.#due = true;
    if (this.#telling) return;
    this.#telling = true;
    while (this.#due) {
      this.#due = false;
      await this.#command.resize(terminalSize()).catch(() => {}); // it has ended, or the next change tells
    }
    this.#telling = false;
  }
}

/** What we type, in order, until the command or the typist has had enough. */
class Keys {
  readonly detached: Promise<'detached'>;
  readonly #command: Command;
  readonly #filter: DetachFilter;
  #detach: (how: 'detached') => void = () => {};
  #stopped = false;

  constructor(command: Command, detachKeys: Uint8Array) {
    this.#command = command;
    this.#filter = new DetachFilter(detachKeys);
    this.detached = new Promise((resolve) => {
      this.#detach = resolve;
    });
    void this.#pump();
  }

  stop(): void {
    this.#stopped = true;
    process.stdin.destroy(); // or its pending read would keep this process alive
  }

  async #pump(): Promise<void> {
    try {
      for await (const typed of process.stdin) {
        const { bytes, detached } = this.#filter.take(typed as Uint8Array);
        if (bytes.byteLength > 0) await this.#command.stdin.write(bytes);
        if (detached) return this.#detach('detached');
      }
    } catch (thrown) {
      if (this.#stopped || (thrown instanceof DsecError && thrown.code === 'STDIN_CLOSED')) return;
      await complain(`keys are no longer passed on: ${thrown instanceof Error ? thrown.message : String(thrown)}`).catch(() => {});
    }
  }
}

const SIGNAL_EXIT_BASE = 128;
const DEPARTURES = { SIGHUP: 1, SIGTERM: 15 } as const;

/** Our terminal is closed, or somebody ends us: the program is told as a terminal would tell it. */
class Departures {
  readonly left: Promise<number>;
  readonly #listeners = new Map<NodeJS.Signals, () => void>();

  constructor(command: Command) {
    this.left = new Promise((resolve) => {
      for (const [signal, number] of Object.entries(DEPARTURES) as [keyof typeof DEPARTURES, number][]) {
        const listener = (): void => {
          const told = command.signal('HUP', { giveUpAfterMs: SDK_LIMITS.attemptTimeoutMs }).catch(() => false); // it may have ended by itself meanwhile
          void told.then(() => resolve(SIGNAL_EXIT_BASE + number));
        };
        this.#listeners.set(signal, listener);
        process.on(signal, listener);
      }
    });
  }

  stop(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }
}
