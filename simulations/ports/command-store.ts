/** The stream COMMANDS at the server: what waits, by the filter that takes it, each in the order in which it was accepted. */
import { tooLargeError } from '#adapters/commit-message.ts';
import { HEADER, headerBytes } from '#adapters/commit-message.ts';
import { type CommandEnvelope, decodeCommand, encode } from '#bus/envelope.ts';
import type { WireError } from '#bus/errors.ts';
import { PORT_LIMITS } from './limits.ts';
import { keyOf, MessageIds } from './message-ids.ts';

/** Bytes; lean: the command as the object that it is. */
export type Packed = Uint8Array | CommandEnvelope;
export type QueuedCommand = { readonly subject: string; readonly data: Packed; readonly sequence: number };
export type StoredCommand =
  | { readonly kind: 'stored' | 'duplicate'; readonly sequence: number }
  | { readonly kind: 'refused'; readonly error: WireError }
  | { readonly kind: 'full' };

/** `commands` in order of their sequence; those before `head` are done with. */
type Waiting = { commands: QueuedCommand[]; head: number; readonly bySequence: Map<number, QueuedCommand> };

export class CommandStore {
  readonly #ids: MessageIds;
  readonly #maxPayloadBytes: number;
  readonly #waiting = new Map<string, Waiting>();
  #lastSequence = 0;
  #size = 0;

  constructor(options: { readonly duplicateWindowMs?: number; readonly maxPayloadBytes?: number } = {}) {
    this.#ids = new MessageIds(options.duplicateWindowMs ?? PORT_LIMITS.duplicateWindowMs);
    this.#maxPayloadBytes = options.maxPayloadBytes ?? PORT_LIMITS.maxPayloadBytes;
  }

  get size(): number {
    return this.#size;
  }

  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Of one subject, oldest first. */
  ofSubject(subject: string, afterSequence: number, limit: number): QueuedCommand[] {
    const found: QueuedCommand[] = [];
    for (const command of this.#waiting.get(filterOf(subject))?.bySequence.values() ?? [])
      if (command.subject === subject && command.sequence > afterSequence && found.length < limit) found.push(command);
    return found;
  }

  sizeOf(filter: string): number {
    return this.#waiting.get(filter)?.bySequence.size ?? 0;
  }

  add(nowMs: number, subject: string, messageId: string, data: Packed): StoredCommand {
    const bytes = data instanceof Uint8Array ? data.byteLength + headerBytes({ [HEADER.messageId]: messageId }) : 0;
    if (bytes > this.#maxPayloadBytes) return { kind: 'refused', error: tooLargeError(subject, bytes, this.#maxPayloadBytes) };
    const key = keyOf(messageId);
    const known = this.#ids.get(nowMs, key);
    if (known !== undefined) return { kind: 'duplicate', sequence: known };
    if (this.#size >= PORT_LIMITS.queuedCommands) return { kind: 'full' };
    this.#lastSequence += 1;
    this.#size += 1;
    const command = { subject, data, sequence: this.#lastSequence };
    const waiting = this.#of(filterOf(subject));
    waiting.commands.push(command);
    waiting.bySequence.set(command.sequence, command);
    this.#ids.remember(nowMs, key, command.sequence);
    return { kind: 'stored', sequence: command.sequence };
  }

  get(filter: string, sequence: number): QueuedCommand | undefined {
    return this.#waiting.get(filter)?.bySequence.get(sequence);
  }

  /** The first one after a sequence. */
  after(filter: string, sequence: number): QueuedCommand | undefined {
    const waiting = this.#waiting.get(filter);
    if (!waiting) return undefined;
    const { commands, bySequence } = waiting;
    let [low, high] = [waiting.head, commands.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((commands[middle] as QueuedCommand).sequence <= sequence) low = middle + 1;
      else high = middle;
    }
    while (low < commands.length && !bySequence.has((commands[low] as QueuedCommand).sequence)) low += 1;
    return commands[low];
  }

  remove(filter: string, sequence: number): void {
    const waiting = this.#waiting.get(filter);
    if (!waiting?.bySequence.delete(sequence)) return;
    this.#size -= 1;
    const { commands, bySequence } = waiting;
    while (waiting.head < commands.length && !bySequence.has((commands[waiting.head] as QueuedCommand).sequence)) waiting.head += 1;
    if (waiting.head * 2 <= commands.length) return;
    waiting.commands = commands.slice(waiting.head);
    waiting.head = 0;
  }

  #of(filter: string): Waiting {
    let waiting = this.#waiting.get(filter);
    if (!waiting) {
      waiting = { commands: [], head: 0, bySequence: new Map() };
      this.#waiting.set(filter, waiting);
    }
    return waiting;
  }
}

/** The filter of the consumer that takes a subject: an Edge's commands share one, each lane has its own. */
export const filterOf = (subject: string): string => {
  const tokens = subject.split('.');
  return tokens[2] === 'edge' ? [...tokens.slice(0, -1), '*'].join('.') : subject;
};

export const pack = (envelope: CommandEnvelope, lean: boolean): Packed => (lean ? envelope : encode(envelope.data.type, envelope));
/** Throws as `decodeCommand` does. */
export const unpack = (data: Packed): CommandEnvelope => (data instanceof Uint8Array ? decodeCommand(data) : data);
