/**
 * Keeps Aether's windows as the readers' credit says, for all commands of one sandbox whose streams may be held back.
 *
 * Credit lies in memory only: after a restart of the Edge every such stream waits for its readers again.
 */
import type { ExecId } from '#bus/ids.ts';
import type { OutputStream } from '#bus/op/schema.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { AetherClient } from '../aether/client.ts';
import type { Channel } from './channel.ts';
import type { Command } from './command.ts';
import { Credit } from './credit.ts';
import type { Window } from './credit.ts';
import { CHRONUS_LIMITS } from './limits.ts';

type Held = { readonly command: Command; readonly stream: OutputStream; readonly credit: Credit; told: Window | undefined };
const STREAMS = ['stdout', 'stderr'] as const;

export class Credits {
  readonly #channel: Channel;
  readonly #clock: Clock;
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;

  constructor(channel: Channel, clock: Clock) {
    this.#channel = channel;
    this.#clock = clock;
  }

  /** A command that is about to start, or that an earlier Edge has left. */
  watch(command: Command): void {
    if (command.accepted.onFull === 'truncate') return;
    for (const stream of STREAMS) {
      const key = keyOf(command.execId, stream);
      if (!this.#held.has(key)) this.#held.set(key, { command, stream, credit: new Credit(this.#clock.monotonicMs()), told: undefined });
    }
    this.#arm();
  }

  forget(command: Command): void {
    for (const stream of STREAMS) this.#held.delete(keyOf(command.execId, stream));
  }

  /** Nothing to do for a stream that cannot be held back. */
  async take(command: Command, stream: OutputStream, reader: string, consumed: number): Promise<void> {
    const held = this.#held.get(keyOf(command.execId, stream));
    held?.credit.take(reader, consumed, this.#clock.monotonicMs());
    if (held) await this.#tell(held);
    this.#arm();
  }

  async release(command: Command, stream: OutputStream, reader: string): Promise<void> {
    const held = this.#held.get(keyOf(command.execId, stream));
    held?.credit.release(reader);
    if (held) await this.#tell(held);
  }

  /** A new connection to Aether: what the old one was told last is not known. */
  tellAll(): void {
    for (const held of this.#held.values()) {
      held.told = undefined;
      this.#tell(held).catch(() => undefined); // whoever next renews its credit tells again
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#held.clear();
  }

  async #tell(held: Held): Promise<void> {
    const window = held.credit.window(this.#clock.monotonicMs());
    if (!held.command.started || held.command.complete || !isNews(held, window)) return;
    const client: AetherClient | undefined = await this.#channel.client();
    if (!client) return;
    const before = held.told;
    held.told = window;
    try {
      const found = await client.window(held.command.execId, held.stream, window.discard, window.hold);
      if (found.state === 'running') held.command.progress(found.progress);
    } catch (error) {
      if (held.told === window) held.told = before;
      throw error;
    }
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const changes = [...this.#held.values()].map(({ credit }) => credit.nextChangeMs()).filter((at) => at !== undefined);
    if (changes.length === 0) return;
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(1, Math.min(...changes) - this.#clock.monotonicMs()));
    this.#timer.unref();
  }

  #onTimer(): void {
    for (const [key, held] of this.#held) {
      const { command } = held;
      if (command.complete || (!command.started && !command.starting)) this.#held.delete(key);
      else this.#tell(held).catch(() => undefined); // the next renewal or reconnection tells
    }
    this.#arm();
  }
}

const keyOf = (execId: ExecId, stream: OutputStream): string => `${execId} ${stream}`;

/** Worth a message: another rule, a good part of the window, or all there is. */
const isNews = ({ command, stream, told }: Held, window: Window): boolean => {
  if (!told) return true;
  const { storedBytes } = command.counts(stream);
  const gained = window.discard - told.discard;
  const step = Math.floor(command.accepted.outputLimitBytes / CHRONUS_LIMITS.windowSteps);
  return window.hold !== told.hold || (gained > 0 && (gained >= step || window.discard >= storedBytes));
};
