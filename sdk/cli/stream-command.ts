/**
 * A command in a sandbox as if it ran here: its output as it comes, our input, Ctrl-C, and its exit code as ours.
 */
import { DsecError, ERRORS } from '#bus/errors.ts';
import { type Command, killWithin } from '../exec/command.ts';
import type { ExecEnd } from '../exec/exec-result.ts';
import { OutputClosed, complain, write } from './output.ts';

const EXIT_TIMEOUT = ERRORS.DEADLINE_EXCEEDED.exit;

/** Resolves with the exit code for this process. When our reader leaves, the command is killed, as a local one would be. */
export const streamCommand = async (command: Command, options: { readonly interactive: boolean }): Promise<number> => {
  const interrupts = new Interrupts(command);
  const input = options.interactive ? new InputPump(command) : undefined;
  try {
    const copies = [copy(command.stdout, process.stdout), copy(command.stderr, process.stderr)];
    const [end] = await Promise.race([Promise.all([command.wait(), ...copies]), interrupts.abandoned]);
    return await exitCodeOf(end);
  } catch (thrown) {
    if (thrown instanceof OutputClosed) await killWithin(command); // it may have ended by itself meanwhile
    throw thrown;
  } finally {
    input?.stop();
    interrupts.stop();
  }
};

const copy = async (from: AsyncIterable<Uint8Array>, to: NodeJS.WritableStream): Promise<void> => {
  for await (const chunk of from) await write(to, chunk);
};

/** The command's own code; for ends that are not its own doing, a line that says why. */
export const exitCodeOf = async (end: ExecEnd): Promise<number> => {
  switch (end.reason) {
    case 'exited':
    case 'signaled':
    case 'cancelled':
      return end.exitCode ?? ERRORS.OUTCOME_UNKNOWN.exit;
    case 'timeout':
      await complain(`command ${end.execId} was killed: it ran longer than its time limit`);
      return EXIT_TIMEOUT;
    case 'oom':
      await complain(`command ${end.execId} was killed: the sandbox ran out of memory; create it with more --memory`);
      return end.exitCode ?? 137;
    case 'expired':
      await complain(`EXPIRED: a life of the sandbox was over while command ${end.execId} ran; dsec get shows which, dsec extend gives more next time`);
      return ERRORS.EXPIRED.exit;
    case 'sandbox_died':
      await complain(`SANDBOX_FAILED: the sandbox ended under command ${end.execId}; dsec events shows how`);
      return ERRORS.SANDBOX_FAILED.exit;
    case 'infra':
      await complain(`OUTCOME_UNKNOWN: the platform lost command ${end.execId}; whether it finished is unknown`);
      return ERRORS.OUTCOME_UNKNOWN.exit;
  }
};

/** First Ctrl-C: the command gets INT and may end in its own way. Second, or SIGTERM: it is killed and we leave. */
class Interrupts {
  readonly abandoned: Promise<never>;
  readonly #command: Command;
  #abandon: (error: DsecError) => void = () => {};
  #count = 0;
  readonly #onInterrupt = (): void => void this.#interrupt();
  readonly #onTerminate = (): void => void this.#leave('SIGTERM');

  constructor(command: Command) {
    this.#command = command;
    this.abandoned = new Promise((_, reject) => {
      this.#abandon = reject;
    });
    this.abandoned.catch(() => {}); // nobody may be waiting any more
    process.on('SIGINT', this.#onInterrupt);
    process.on('SIGTERM', this.#onTerminate);
  }

  stop(): void {
    process.off('SIGINT', this.#onInterrupt);
    process.off('SIGTERM', this.#onTerminate);
  }

  async #interrupt(): Promise<void> {
    this.#count += 1;
    if (this.#count === 1) {
      await this.#command.signal('INT').catch(() => {}); // ended already, or a second Ctrl-C will tell
      return;
    }
    await this.#leave('the second Ctrl-C');
  }

  async #leave(why: string): Promise<void> {
    const { execId, sandboxId } = this.#command;
    const killed = await killWithin(this.#command);
    const text = killed ? `was killed after ${why}` : `is left after ${why}: nobody says whether it was killed; dsec kill ${sandboxId} ${execId} does it later`;
    this.#abandon(DsecError.of('CANCELLED', `command ${execId} ${text}`));
  }
}

/** Our stdin to the command's, one chunk at a time, until either side has had enough. */
class InputPump {
  #stopped = false;

  constructor(command: Command) {
    void this.#pump(command);
  }

  stop(): void {
    this.#stopped = true;
    process.stdin.destroy(); // or its pending read would keep this process alive
  }

  async #pump(command: Command): Promise<void> {
    try {
      for await (const chunk of process.stdin) await command.stdin.write(chunk as Uint8Array);
      await command.stdin.close();
    } catch (thrown) {
      if (this.#stopped || (thrown instanceof DsecError && thrown.code === 'STDIN_CLOSED')) return;
      await complain(`input is no longer passed on: ${thrown instanceof Error ? thrown.message : String(thrown)}`).catch(() => {});
    }
  }
}
