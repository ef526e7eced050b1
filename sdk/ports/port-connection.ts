/** `sandbox.connectPort`: a connection to a server in a sandbox as a stream in both directions. */
import { Duplex } from 'node:stream';
import type { SandboxId } from '#bus/ids.ts';
import type { PortTarget } from '#bus/op/ports.ts';
import type { Session } from '../session.ts';
import { PortExchange } from './exchange.ts';

export class PortConnection extends Duplex {
  readonly #exchange: PortExchange;
  readonly #chunks: AsyncGenerator<Uint8Array>;

  private constructor(exchange: PortExchange) {
    super({ allowHalfOpen: false }); // as sockets are by default: when the server has ended, so do we
    this.#exchange = exchange;
    this.#chunks = exchange.bytes();
  }

  static async open(session: Session, sandboxId: SandboxId, target: PortTarget, signal: AbortSignal | undefined): Promise<PortConnection> {
    const exchange = new PortExchange(session, sandboxId, signal);
    await exchange.dial(target);
    return new PortConnection(exchange);
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => {
        this.push(done ? null : value);
      },
      (thrown: Error) => this.destroy(thrown),
    );
  }

  override _write(chunk: Uint8Array, _: BufferEncoding, done: (error?: Error) => void): void {
    this.#exchange.send(chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error) => void): void {
    this.#exchange.finish().then(
      () => done(),
      (thrown: Error) => done(this.readableEnded ? undefined : thrown), // a server that has ended need not hear of our end
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#exchange.hangUp();
    done(error);
  }
}
