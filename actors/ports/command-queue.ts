/** The work queue of commands. Delivery is at least once, and after a crash not in order: handlers guard themselves. */
import type { WireError } from '#bus/errors.ts';

export type EnqueueOutcome =
  | { readonly outcome: 'applied'; readonly sequence: number; readonly duplicate: boolean }
  | { readonly outcome: 'not_applied'; readonly error: WireError }
  | { readonly outcome: 'unknown'; readonly error: WireError };

export type Delivery = {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Place in COMMANDS: the order in which commands were accepted. */
  readonly sequence: number;
  /** 1 at the first delivery. */
  readonly attempt: number;
  /** Keeps the message from being redelivered while work on it goes on. */
  extend(): void;
  /** Removes it from the queue. Called after the commit is durable, never before. */
  ack(): void;
  /** Gives it back, to be delivered again after `delayMs`. */
  retry(delayMs: number): void;
  /** Removes a message that no reader will ever understand. */
  discard(reason: string): void;
};

export interface CommandConsumer {
  /** Stops pulling; resolves when every handler that was started has ended. */
  close(): Promise<void>;
}

/** A command that waits, as somebody sees it who does not take it. */
export type WaitingCommand = { readonly subject: string; readonly sequence: number; readonly data: Uint8Array };

export interface CommandQueue {
  /** Durable once `applied`. `messageId` starts with the project and stays the same over repetitions. */
  enqueue(subject: string, messageId: string, data: Uint8Array): Promise<EnqueueOutcome>;
  /**
   * Delivers what matches `filter`, oldest first. `fresh` deletes and recreates the consumer, so that everything not yet
   * acknowledged comes back in its order. At most `maxInFlight` deliveries are unacknowledged at a time.
   */
  consume(
    options: { name: string; filter: string; fresh: boolean; maxInFlight: number },
    handler: (delivery: Delivery) => void | Promise<void>,
  ): Promise<CommandConsumer>;
  /** Commands on one subject that nobody has acknowledged, oldest first, after `afterSequence`, at most `limit`. Takes none of them. */
  waiting(subject: string, afterSequence: number, limit: number): Promise<WaitingCommand[]>;
  /** Sequence of the newest command that was ever accepted; 0 when there was none. */
  lastSequence(): Promise<number>;
}
