/**
 * What the SDK needs of a bus. `nats-bus.ts` is the real one; tests of races use a scripted one.
 * Delivery is at most once on both halves: a request may be lost with its answer, a published commit may never arrive.
 */
export type BusFailureKind = 'no_responders' | 'timeout' | 'disconnected' | 'forbidden' | 'overloaded' | 'closed';

/** Why no answer came. What that means for the caller (which code, whether to repeat) is decided in `retry.ts`. */
export class BusFailure extends Error {
  readonly kind: BusFailureKind;
  constructor(kind: BusFailureKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BusFailure';
    this.kind = kind;
  }
}

export type BusMessage = {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Stream sequence of a republished commit; undefined when the message does not come from a stream. */
  sequence(): number | undefined;
};

export interface Bus {
  /** One question, one answer; rejects with a `BusFailure`. Never buffers while disconnected. */
  request(subject: string, payload: Uint8Array, timeoutMs: number, headers?: Readonly<Record<string, string>>): Promise<Uint8Array>;
  /** Interest is on its way to the server when this returns, ahead of every request made afterwards. */
  subscribe(subject: string, onMessage: (message: BusMessage) => void, onFailure: (failure: BusFailure) => void): () => void;
  /** Called after each reconnect: whatever was published meanwhile is gone. */
  onReconnect(listener: () => void): () => void;
  close(): Promise<void>;
}
