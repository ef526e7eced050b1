/**
 * Follows a stream from a sequence on, for as long as its owner wants: in order, without a gap, each message at least
 * once, the handler awaited. The cursor lives here; the consumer at the server is thrown away and made again from the
 * cursor whenever anything is doubtful (lost connection, silence, a delivery missing), since keeping it saves nothing.
 */
import { nuid } from '@nats-io/transport-node';
import type { Tail } from '#actors/ports/event-log.ts';
import { toWireError } from '#bus/errors.ts';
import { Backoff } from './backoff.ts';
import type { BusContext } from './context.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import { readingConsumer } from './one-shot.ts';
import { type PullEnd, type PulledMessage, PullInbox } from './pull.ts';

type Item = { readonly kind: 'message'; readonly message: PulledMessage } | { readonly kind: 'end'; readonly end: PullEnd } | { readonly kind: 'close' };

export class StreamTail implements Tail {
  readonly #context: BusContext;
  readonly #stream: string;
  readonly #filter: string | undefined;
  readonly #handle: (message: PulledMessage) => Promise<void>;
  readonly #backoff: Backoff;
  readonly #ended: Promise<void>;
  /** Received and not handled yet: at most one pull request's worth. */
  readonly #items: Item[] = [];
  #wake: () => void = () => {};
  #nextSequence: number;
  #closing = false;

  /** `filter`: messages of these subjects only. */
  constructor(context: BusContext, stream: string, fromSequence: number, handle: (message: PulledMessage) => Promise<void>, filter?: string) {
    this.#context = context;
    this.#stream = stream;
    this.#filter = filter;
    this.#nextSequence = Math.max(1, fromSequence);
    this.#handle = handle;
    this.#backoff = new Backoff(context.watch);
    this.#ended = this.#run();
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#backoff.cancel();
    this.#offer({ kind: 'close' });
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#closing && !this.#context.watch.isClosed) {
      try {
        await this.#session();
      } catch (thrown) {
        const { code, message } = toWireError(thrown);
        this.#context.report({ event: 'tail_interrupted', stream: this.#stream, nextSequence: this.#nextSequence, code, message });
      }
      if (!this.#closing) await this.#backoff.wait();
    }
  }

  /** Returns when the consumer has to be made again. */
  async #session(): Promise<void> {
    const name = `tail-${nuid.next()}`;
    this.#items.length = 0;
    await this.#context.api.createConsumer(this.#stream, {
      ...readingConsumer(name),
      deliver_policy: 'by_start_sequence',
      opt_start_seq: this.#nextSequence,
      ...(this.#filter === undefined ? {} : { filter_subject: this.#filter }),
    });
    const inbox = new PullInbox(this.#context, this.#stream, name, {
      message: (message) => this.#offer({ kind: 'message', message }),
      end: (end) => this.#offer({ kind: 'end', end }),
    });
    try {
      inbox.pull(1, { wait: true });
      await this.#consume(inbox);
    } finally {
      inbox.close();
      this.#context.api.deleteConsumer(this.#stream, name).catch(() => {}); // best effort: it goes by itself when idle
    }
  }

  /**
   * Waits for one message; then lets others gather for a moment and takes all there are, until there are none. A message that
   * wakes this process for itself alone costs both sides more than its handling, and so does a request for one.
   */
  async #consume(inbox: PullInbox): Promise<void> {
    let delivered = 0;
    let came = 0;
    while (!this.#closing) {
      const item = await this.#take();
      if (item.kind === 'close' || (item.kind === 'end' && item.end === 'broken')) return;
      if (item.kind === 'end') {
        if (came === 0) inbox.pull(1, { wait: true });
        else {
          if (came < JETSTREAM_LIMITS.tailBatch) await this.#linger();
          inbox.pull(JETSTREAM_LIMITS.tailBatch, { wait: false });
        }
        came = 0;
        continue;
      }
      const { message } = item;
      came += 1;
      if (message.deliverySequence !== delivered + 1) return; // what lies between was lost on the way
      delivered = message.deliverySequence;
      if (message.sequence < this.#nextSequence) continue;
      await this.#handle(message);
      this.#nextSequence = message.sequence + 1;
      this.#backoff.reset();
    }
  }

  /** Cut short by anything that comes: the end of the connection, or of this tail. */
  async #linger(): Promise<void> {
    if (this.#items.length > 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, JETSTREAM_LIMITS.tailLingerMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #offer(item: Item): void {
    this.#items.push(item);
    this.#wake();
  }

  async #take(): Promise<Item> {
    for (;;) {
      const item = this.#items.shift();
      if (item) return item;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
