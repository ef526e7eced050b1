/**
 * One connection to a launcher: requests with an id each, their answers in any order, a time for each. Ends as a whole: when the
 * connection does, whatever waits is told that its outcome is unknown.
 */
import type { Socket } from 'node:net';
import { DsecError } from '#bus/errors.ts';
import { connectUnix } from '../unix-connect.ts';
import { launcherError } from './launcher-errors.ts';
import { LAUNCHER_LIMITS } from './limits.ts';
import { ANSWER, encodeFrame, fieldOf, type Frame, type Pair, takeFrames } from './wire.ts';

type Pending = { readonly request: string; readonly resolve: (frame: Frame) => void; readonly reject: (error: Error) => void; readonly timer: NodeJS.Timeout };

export class LauncherConnection {
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  readonly #onClose: (() => void)[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #lastId = 0;
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('error', () => {}); // 'close' follows, and says it
    socket.on('close', () => this.#onClosed());
  }

  /** EDGE_UNAVAILABLE when no launcher listens. */
  static async open(socketPath: string): Promise<LauncherConnection> {
    const socket = await connectUnix(socketPath).catch((cause: NodeJS.ErrnoException) =>
      Promise.reject(cause instanceof DsecError ? cause : unreachable(socketPath, cause)),
    );
    return new LauncherConnection(socket);
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** Requests that are not answered yet. */
  get waiting(): number {
    return this.#pending.size;
  }

  /** Called once, when the connection ends for whatever reason; at once when it has. */
  onClose(listener: () => void): void {
    if (this.#closed) listener();
    else this.#onClose.push(listener);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** `request` is how errors name it. */
  ask(type: number, request: string, pairs: readonly Pair[], answerMs: number = LAUNCHER_LIMITS.answerMs): Promise<Frame> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw lost(request);
      if (this.#pending.size >= LAUNCHER_LIMITS.pendingRequests)
        throw DsecError.of('OVERLOADED', `${request}: too many requests wait for the launcher; try again later`);
      const id = ++this.#lastId;
      const frame = encode(type, id, request, pairs);
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(DsecError.of('DEADLINE_EXCEEDED', `${request}: the launcher did not answer within ${answerMs} ms; repeat the request`));
      }, answerMs);
      this.#pending.set(id, { request, resolve, reject, timer });
      this.#socket.write(frame);
    });
  }

  #onData(bytes: Buffer): void {
    try {
      const { frames, rest } = takeFrames(this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]));
      this.#rest = rest;
      for (const frame of frames) this.#settle(frame);
    } catch (thrown) {
      this.#socket.destroy(thrown as Error); // not a launcher's bytes: nothing after them can be trusted
    }
  }

  #settle(frame: Frame): void {
    const pending = this.#pending.get(frame.id);
    if (!pending) return; // answered after its time-out
    this.#pending.delete(frame.id);
    clearTimeout(pending.timer);
    if (frame.type === ANSWER.ok) return pending.resolve(frame);
    const [code = '', step = '', errno = '', message = ''] = ['code', 'step', 'errno', 'message'].map((key) => fieldOf(frame, key));
    pending.reject(launcherError({ request: pending.request, code, step, errno, message }));
  }

  #onClosed(): void {
    this.#closed = true;
    for (const { request, reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(lost(request));
    }
    this.#pending.clear();
    for (const listener of this.#onClose.splice(0)) listener();
  }
}

const encode = (type: number, id: number, request: string, pairs: readonly Pair[]): Buffer => {
  try {
    return encodeFrame(type, id, pairs);
  } catch (cause) {
    throw DsecError.of('INVALID_ARGUMENT', `${request}: ${(cause as Error).message}`, { cause });
  }
};

const lost = (request: string): DsecError =>
  DsecError.of('EDGE_UNAVAILABLE', `${request}: the connection to the launcher ended; whether it was done is unknown, repeat it over a new connection`);

const unreachable = (path: string, cause: NodeJS.ErrnoException): DsecError =>
  DsecError.of('EDGE_UNAVAILABLE', `no launcher listens at ${path} (${cause.code}); start one`, {
    outcome: 'not_applied',
    details: { errno: cause.code },
    cause,
  });
