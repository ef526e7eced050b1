/**
 * One files connection: to the sandbox's agent, which hands it to a worker of the named user. Sends frames, gives frames; what
 * they mean is the caller's. The worker ends with the connection. @paper §3.3
 */
import type { Socket } from 'node:net';
import { DsecError } from '#bus/errors.ts';
import { connectUnix, nobodyListens } from '../unix-connect.ts';
import { fileError, workerGone } from './file-errors.ts';
import { chunkHeader, commitFrame, encodeRequest, FILE_REQUEST, type FileRequest, FrameReader, HostileWorker, type Pairs, type WorkerFrame } from './wire.ts';

export type WorkerEvents = {
  frame(frame: WorkerFrame): void;
  /** Once. The worker is gone, or said what no worker says. */
  close(error: DsecError): void;
};

const NOBODY: WorkerEvents = { frame: () => undefined, close: () => undefined };

export class Worker {
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  #events: WorkerEvents = NOBODY;
  #hostile = false;
  #lastId = 1;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => undefined); // 'close' follows, and is what counts
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('close', () =>
      this.#events.close(this.#hostile ? DsecError.of('INTERNAL', 'the files worker of the sandbox broke its protocol') : workerGone('go on')),
    );
  }

  /** Throws a typed error when the sandbox is gone, has no such user or no room for a process. */
  static async open(socketPath: string, user: string): Promise<Worker> {
    const socket = await connectUnix(socketPath).catch((error: unknown) =>
      Promise.reject(nobodyListens(error) ? DsecError.of('SANDBOX_ENDED', 'the sandbox has ended; create a new one') : error),
    );
    return new Promise((resolve, reject) => {
      const worker = new Worker(socket);
      worker.listen({
        frame: (frame) => {
          if (frame.type === 'ready') resolve(worker);
          else reject(frame.type === 'failed' ? fileError(`serve files to user ${user}`, frame.failure) : workerGone('start'));
        },
        close: reject,
      });
      socket.write(encodeRequest(FILE_REQUEST.files, 1, { user }));
    });
  }

  get open(): boolean {
    return !this.#socket.destroyed;
  }

  listen(events: WorkerEvents): void {
    this.#events = events;
  }

  request(request: FileRequest, pairs: Pairs): void {
    this.#lastId = (this.#lastId + 1) % 2 ** 32;
    this.#socket.write(encodeRequest(FILE_REQUEST[request], this.#lastId, pairs));
  }

  /** One chunk of an upload: at most a data-plane chunk. */
  chunk(bytes: Uint8Array): void {
    this.#socket.cork();
    this.#socket.write(chunkHeader(this.#lastId, bytes.byteLength));
    this.#socket.write(bytes);
    this.#socket.uncork();
  }

  commit(): void {
    this.#socket.write(commitFrame(this.#lastId));
  }

  /** Bytes that the worker has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** Calls back when the worker has taken what was sent. */
  onDrain(callback: () => void): void {
    this.#socket.on('drain', callback);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#events = NOBODY;
    this.#socket.destroy();
  }

  /** Closes it and tells its listener why. */
  abandon(error: DsecError): void {
    const { close } = this.#events;
    this.close();
    close(error);
  }

  #onData(bytes: Buffer): void {
    try {
      this.#reader.take(bytes, (frame) => this.#events.frame(frame));
    } catch (error) {
      if (!(error instanceof HostileWorker) && !(error instanceof DsecError)) throw error;
      this.#hostile = true;
      this.#socket.destroy();
    }
  }
}
