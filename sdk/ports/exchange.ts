/**
 * One exchange with a server in a sandbox, as the client holds it: opened once, then bytes by offset in both directions. A lost
 * answer is asked for again; an exchange that its node has lost is told, never begun a second time in silence.
 */
import { DsecError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { PORT_LIMITS, WIRE_LIMITS } from '#bus/limits.ts';
import type { PortOpName } from '#bus/op/ports.ts';
import type { OpRequest } from '#bus/op/schema.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Session } from '../session.ts';
import { longPollMs, type OpCallOptions, type OpResult } from '../transport/op-client.ts';
import { randomKey } from '../transport/clock.ts';

export type Received = OpResult<'receive'>;

export class PortExchange {
  readonly #session: Session;
  readonly #sandboxId: SandboxId;
  readonly #signal: AbortSignal | undefined;
  readonly #id = randomKey();
  #sent = 0;

  constructor(session: Session, sandboxId: SandboxId, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#sandboxId = sandboxId;
    this.#signal = signal;
  }

  /**
   * Sends the request with the beginning of its body; the answer's head is there, or still to come. Repeated only when it certainly
   * did not arrive: after a restart of the node it would be sent a second time.
   */
  async fetch(order: Omit<OpRequest<'fetch'>, 'v' | 'id' | 'waitMs'>, body: Uint8Array, waitMs: number): Promise<Received> {
    this.#sent = body.byteLength;
    try {
      return await this.#call('fetch', order, { body, waitMs, idempotent: false });
    } catch (thrown) {
      if (!isSilence(thrown)) throw thrown;
      return this.receive(0, 0); // it is there, or CONNECTION_LOST says that nobody knows
    }
  }

  async untilHead(first: Received): Promise<Received> {
    let answer = first;
    for (let n = 0; answer.data.head === null; n += 1) answer = await this.receive(0, longPollMs(n));
    return answer;
  }

  /** Begun again after a restart of the node it harms nothing: no byte has gone through it. */
  async dial(target: OpRequest<'dial'>['target']): Promise<void> {
    await this.#call('dial', { target }, { giveUpAfterMs: SDK_LIMITS.dialTimeoutMs });
  }

  /** Resolves when the node has taken it all. */
  async send(bytes: Uint8Array): Promise<void> {
    for (let rest = bytes; rest.byteLength > 0; ) {
      const part = rest.subarray(0, WIRE_LIMITS.maxChunkBytes);
      const { data } = await this.#call('send', { offset: this.#sent }, { body: part });
      const taken = Math.max(0, Math.min(part.byteLength, data.nextOffset - this.#sent));
      this.#sent += taken;
      rest = rest.subarray(taken);
    }
  }

  /** Nothing more is sent. */
  async finish(): Promise<void> {
    await this.#call('send', { offset: this.#sent, close: true }, {});
  }

  receive(offset: number, waitMs: number): Promise<Received> {
    return this.#call('receive', { offset }, { waitMs: Math.min(waitMs, PORT_LIMITS.longPollMs) });
  }

  /** Everything from `offset` to the end; what `first` brought is not asked for again. */
  async *bytes(first?: Received): AsyncGenerator<Uint8Array> {
    let answer = first;
    for (let offset = 0, idlePolls = 0; ; ) {
      answer ??= await this.receive(offset, longPollMs(idlePolls));
      const { data, body } = answer;
      answer = undefined;
      idlePolls = body.byteLength === 0 ? idlePolls + 1 : 0;
      offset += body.byteLength;
      if (body.byteLength > 0) yield body;
      if (data.eof) return;
    }
  }

  /** Tells the node that nothing more is asked. Not waited for: it would find out itself. */
  hangUp(): void {
    this.#session.ops.call(this.#sandboxId, 'hangup', { id: this.#id }, { giveUpAfterMs: SDK_LIMITS.attemptTimeoutMs }).catch(() => {});
  }

  #call<O extends PortOpName>(op: O, request: object, options: OpCallOptions): Promise<OpResult<O>> {
    const whole = { id: this.#id, ...request } as Omit<OpRequest<O>, 'v'>;
    return this.#session.ops.call(this.#sandboxId, op, whole, { signal: this.#signal, ...options });
  }
}

/** No answer, and nobody knows whether it arrived. */
const isSilence = (thrown: unknown): boolean =>
  thrown instanceof DsecError && thrown.outcome === 'unknown' && ['DEADLINE_EXCEEDED', 'BUS_UNAVAILABLE', 'EDGE_UNAVAILABLE'].includes(thrown.code);
