/**
 * From the journal's line to a running process, at most once.
 *
 * A start whose answer got lost is asked for again: Aether says whether it knows the exec id, and then what became of it.
 */
import { DsecError } from '#bus/errors.ts';
import type { ExecId } from '#bus/ids.ts';
import { tracedPart } from '../tracing/spans.ts';
import { AetherGone } from '../aether/client.ts';
import type { AetherClient, StartRequest } from '../aether/client.ts';
import type { Exit } from '../aether/wire.ts';
import type { Channel } from './channel.ts';
import type { Command } from './command.ts';
import type { ExecFiles } from './files.ts';
import { CHRONUS_LIMITS } from './limits.ts';
import { type ExecDefaults, type ExecRequest, startRequestOf } from './request.ts';
import type { CommandTable } from './table.ts';

export type StarterOptions = {
  readonly table: CommandTable;
  readonly channel: Channel;
  readonly files: ExecFiles;
  readonly onExit: (exit: Exit) => void;
};

export class Starter {
  readonly #o: StarterOptions;

  constructor(options: StarterOptions) {
    this.#o = options;
  }

  /** Whoever waits for the command learns how it went: woken when it runs, dismissed with the reason when it cannot. */
  ensureStarted(command: Command, request: ExecRequest, body: Uint8Array, defaults: ExecDefaults): void {
    command.starting ??= tracedPart('chronus.start', {}, () => this.#start(command, startRequestOf(request, body, command.execId, defaults)))
      .catch((error: unknown) => command.dismiss(error instanceof Error ? error : new Error(String(error))))
      .finally(() => {
        command.starting = undefined;
      });
  }

  /** A start that an earlier Edge asked for, seen on its way, did not happen. */
  onFailedElsewhere(execId: ExecId): void {
    const command = this.#o.table.peek(execId);
    if (!command || command.ended) return;
    this.#o.table.refuse(command);
    command.dismiss(DsecError.of('START_FAILED', `command ${execId} could not be started; repeat the call to learn why`, { retry: 'same' }));
  }

  /** Asks Aether what became of a command. One that is being started learns that from its start. */
  async refresh(command: Command): Promise<void> {
    const wasStarted = this.#o.files.wasStarted(command.execId);
    const client = await this.#o.channel.client();
    if (!client || command.starting) return;
    const found = await this.#query(client, command);
    command.fresh = true;
    // its log was there before Aether was asked and is there still: an agent that lives knows what it started
    if (!found && wasStarted && !command.starting && this.#o.files.wasStarted(command.execId)) this.#writeOff(command);
  }

  async #start(command: Command, request: StartRequest): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const client = await this.#o.channel.client();
      if (!client) throw this.#sandboxEnded(command);
      try {
        if (await this.#tryStart(client, command, request)) return;
      } catch (error) {
        if (!(error instanceof AetherGone)) {
          this.#o.table.refuse(command);
          throw error;
        }
        if (tries >= CHRONUS_LIMITS.startTries) throw this.#outcomeUnknown(command, error);
      }
    }
  }

  /** False when an earlier start of the same id was just failing: then it is free again. */
  async #tryStart(client: AetherClient, command: Command, request: StartRequest): Promise<boolean> {
    const result = await client.start(request);
    if (!result.known) {
      command.markStarted(result.startedAtMs);
      return true;
    }
    if (await this.#query(client, command)) return true;
    if (!this.#o.files.wasStarted(command.execId)) return false;
    this.#writeOff(command);
    return true;
  }

  async #query(client: AetherClient, command: Command): Promise<boolean> {
    const result = await client.query(command.execId);
    if (result.state === 'running') command.progress(result.progress);
    if (result.state === 'ended') this.#o.onExit(result.exit);
    return result.state !== 'unknown';
  }

  /** Only damage to the sandbox's files leads here: a command that ran, and whose end nobody knows. */
  #writeOff(command: Command): void {
    command.endWithoutRecord('infra', command.accepted.at, this.#o.files);
    this.#o.table.settle(command);
  }

  #outcomeUnknown({ execId }: Command, cause: Error): DsecError {
    return DsecError.of('OUTCOME_UNKNOWN', `the agent broke off while it started command ${execId}; repeat the call with the same key`, { cause });
  }

  /** The sandbox went away under the start. If the command may have run, that is its end; if not, its key is free. */
  #sandboxEnded(command: Command): DsecError {
    if (!command.ended && !this.#o.files.wasStarted(command.execId)) this.#o.table.refuse(command);
    return DsecError.of('SANDBOX_ENDED', 'the sandbox ended while the command was started; create a new one', { fault: 'infra' });
  }
}
