/**
 * One connection of an Edge to the Aether of one sandbox.
 *
 * It pairs requests with answers and hands unasked frames on. It does not reconnect, does not remember commands, and has
 * no time-outs of its own: an agent that is frozen with its sandbox answers when it is thawed. @paper §3.3
 */
import type { Socket } from 'node:net';
import { DsecError, wireError } from '#bus/errors.ts';
import { connectUnix, nobodyListens } from '../unix-connect.ts';
import type { ExecId } from '#bus/ids.ts';
import { AETHER_LIMITS } from './limits.ts';
import { startError } from './start-errors.ts';
import { encodeRequest, LONGEST_FRAME_BYTES, REQUEST, takeFrames } from './wire.ts';
import type { Exit, Frame, Progress, Refusal } from './wire.ts';

export type StartRequest = {
  readonly execId: ExecId;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly user: string;
  readonly stdin: 'none' | 'open' | 'bytes';
  readonly stdinBytes: Uint8Array;
  /** 0: none. */
  readonly timeoutMs: number;
  readonly outputLimitBytes: number;
  /** Descriptors that each of its processes may have; absent: what the sandbox gives. */
  readonly openFiles?: number | undefined;
  /** What happens when a log is full: the newest bytes are dropped (default), the writer waits, the oldest are dropped. */
  readonly onFull?: OnFull | undefined;
  /** Size of its terminal; absent: it has none. */
  readonly terminal?: TerminalSize | undefined;
};
export type OnFull = 'truncate' | 'block' | 'roll';
export type TerminalSize = { readonly rows: number; readonly columns: number };

/** `known`: this exec id was started before, now or by an earlier Edge. */
export type StartResult = { readonly known: false; readonly pid: number; readonly startedAtMs: number } | { readonly known: true };
export type QueryResult =
  | { readonly state: 'running'; readonly progress: Progress }
  | { readonly state: 'ended'; readonly exit: Exit }
  | { readonly state: 'unknown' };
export type StdinResult = { readonly nextOffset: number } | { readonly refusal: Refusal };

export type AetherEvents = {
  progress(progress: Progress): void;
  exit(exit: Exit): void;
  /** A start that an earlier connection asked for did not happen after all. */
  startFailed(execId: ExecId): void;
  /** Once, after the last frame. `error` when it was not this side that closed. */
  close(error: Error | undefined): void;
};

type Pending = { readonly expects: readonly Frame['type'][]; readonly resolve: (frame: Frame) => void; readonly reject: (error: Error) => void };

/**
 * The agent went away while a request was under way: whether it had an effect is unknown. Whoever repeats the request learns from the
 * sandbox's state whether it has ended, and why.
 */
export class AetherGone extends DsecError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(wireError('EDGE_UNAVAILABLE', message), options);
    this.name = 'AetherGone';
  }
}

const EMPTY = Buffer.alloc(0);
const SIGKILL = 9;

export class AetherClient {
  readonly #socket: Socket;
  readonly #events: AetherEvents;
  readonly #pending = new Map<number, Pending>();
  #rest: Buffer = EMPTY;
  #lastId = 0;
  #problem: Error | undefined;
  #closing = false;

  private constructor(socket: Socket, events: AetherEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('error', (error) => (this.#problem ??= error));
    socket.on('close', () => this.#onClose());
  }

  /** Undefined when nobody listens there any more: the agent, and with it the sandbox, is gone. */
  static async connect(path: string, events: AetherEvents): Promise<AetherClient | undefined> {
    try {
      return new AetherClient(await connectUnix(path), events);
    } catch (thrown) {
      if (nobodyListens(thrown)) return undefined;
      throw thrown;
    }
  }

  get open(): boolean {
    return !this.#closing && !this.#socket.destroyed;
  }

  async ping(): Promise<void> {
    await this.#ask(REQUEST.ping, [], ['pong']);
  }

  /** Throws a typed error when the command cannot be started (nothing of it is left then), AetherGone when that is unknown. */
  async start(request: StartRequest): Promise<StartResult> {
    const frame = await this.#ask(REQUEST.start, startPairs(request), ['started', 'start-failed'], request.stdinBytes);
    if (frame.type === 'started') return { known: false, pid: frame.pid, startedAtMs: frame.startedAtMs };
    if (frame.type !== 'start-failed') throw new AetherGone('no answer');
    if (frame.failure === 'known') return { known: true };
    throw startError(frame.failure, frame.errno, { program: request.argv[0] ?? '', user: request.user, cwd: request.cwd });
  }

  /** Answers when every byte up to `offset + bytes` lies in the command's pipe, or its reader has left. */
  async stdin(execId: ExecId, offset: number, bytes: Uint8Array, close: boolean): Promise<StdinResult> {
    const pairs = [
      ['exec', execId],
      ['offset', offset],
      ['close', close ? 1 : 0],
    ] as const;
    const frame = await this.#ask(REQUEST.stdin, pairs, ['stdin-at', 'error'], bytes);
    return frame.type === 'stdin-at' ? { nextOffset: frame.nextOffset } : { refusal: frame.type === 'error' ? frame.refusal : 'malformed' };
  }

  async signal(execId: ExecId, signalNumber: number, tree: boolean): Promise<boolean> {
    const pairs = [
      ['exec', execId],
      ['signal', signalNumber],
      ['tree', tree ? 1 : 0],
    ] as const;
    const frame = await this.#ask(REQUEST.signal, pairs, ['signaled']);
    return frame.type === 'signaled' && frame.delivered;
  }

  /** Kills what the command has started since its newest input; the leader and what is older live on. True when there was something. */
  async killSinceInput(execId: ExecId): Promise<boolean> {
    const pairs = [
      ['exec', execId],
      ['signal', SIGKILL],
      ['tree', 1],
      ['sinceInput', 1],
    ] as const;
    const frame = await this.#ask(REQUEST.signal, pairs, ['signaled']);
    return frame.type === 'signaled' && frame.delivered;
  }

  /** False when the command has no terminal, or ended. */
  async resize(execId: ExecId, { rows, columns }: TerminalSize): Promise<boolean> {
    const pairs = [
      ['exec', execId],
      ['rows', rows],
      ['columns', columns],
    ] as const;
    const frame = await this.#ask(REQUEST.resize, pairs, ['signaled']);
    return frame.type === 'signaled' && frame.delivered;
  }

  /** Bytes of a stream's log below `discard` are needed no more; while `hold`, a full log holds its writer back. */
  async window(execId: ExecId, stream: 'stdout' | 'stderr', discard: number, hold: boolean): Promise<QueryResult> {
    const pairs = [
      ['exec', execId],
      ['err', stream === 'stderr' ? 1 : 0],
      ['discard', discard],
      ['hold', hold ? 1 : 0],
    ] as const;
    return found(await this.#ask(REQUEST.window, pairs, QUERY_ANSWERS));
  }

  /** The hard end of the sandbox's life is that far from now. */
  async setLife(seconds: number): Promise<void> {
    await this.#ask(REQUEST.life, [['seconds', seconds]], ['pong']);
  }

  /** While it stands, no time-out of a command runs. */
  async stopClock(stopped: boolean): Promise<void> {
    await this.#ask(REQUEST.clock, [['stopped', stopped ? 1 : 0]], ['pong']);
  }

  async query(execId: ExecId): Promise<QueryResult> {
    return found(await this.#ask(REQUEST.query, [['exec', execId]], QUERY_ANSWERS));
  }

  close(): void {
    this.#closing = true;
    this.#socket.destroy();
  }

  #ask(type: number, pairs: Iterable<readonly [string, string | number]>, expects: readonly Frame['type'][], tail?: Uint8Array): Promise<Frame> {
    return new Promise((resolve, reject) => {
      if (!this.open) throw new AetherGone('the agent of the sandbox is gone');
      if (this.#pending.size >= AETHER_LIMITS.pendingRequests || this.#socket.writableLength > AETHER_LIMITS.unsentBytes) {
        throw DsecError.of('OVERLOADED', 'too many requests wait for the agent of the sandbox; try again later');
      }
      const id = this.#lastId + 1;
      const frame = encodeRequest(type, id, pairs, tail);
      this.#lastId = id;
      this.#pending.set(id, { expects, resolve, reject });
      this.#socket.write(frame);
    });
  }

  #onData(bytes: Buffer): void {
    const all = this.#rest.byteLength === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    try {
      const taken = takeFrames(all, (frame) => this.#onFrame(frame));
      // copied: a view would keep the socket's whole chunk alive
      this.#rest = taken === all.byteLength ? EMPTY : Buffer.from(all.subarray(taken, taken + LONGEST_FRAME_BYTES));
    } catch (error) {
      this.#socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #onFrame(frame: Frame): void {
    if (frame.id === 0) return this.#onUnasked(frame);
    const pending = this.#pending.get(frame.id);
    if (!pending?.expects.includes(frame.type)) throw new AetherGone(`unexpected answer '${frame.type}' to request ${frame.id}`);
    this.#pending.delete(frame.id);
    pending.resolve(frame);
  }

  #onUnasked(frame: Frame): void {
    if (frame.type === 'progress') this.#events.progress(frame.progress);
    else if (frame.type === 'exit') this.#events.exit(frame.exit);
    else if (frame.type === 'start-failed') this.#events.startFailed(frame.execId);
    else throw new AetherGone(`unasked frame '${frame.type}'`);
  }

  #onClose(): void {
    const error = new AetherGone('the agent of the sandbox went away', { cause: this.#problem });
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#events.close(this.#closing ? undefined : error);
  }
}

const QUERY_ANSWERS = ['progress', 'exit', 'unknown'] as const;

const found = (frame: Frame): QueryResult => {
  if (frame.type === 'progress') return { state: 'running', progress: frame.progress };
  return frame.type === 'exit' ? { state: 'ended', exit: frame.exit } : { state: 'unknown' };
};

function* startPairs(request: StartRequest): Generator<readonly [string, string | number]> {
  // what the agent looks up comes first: it searches from the front
  yield ['exec', request.execId];
  yield ['stdin', request.stdin];
  yield ['timeoutMs', request.timeoutMs];
  yield ['limitStdout', request.outputLimitBytes];
  yield ['limitStderr', request.outputLimitBytes];
  if (request.openFiles !== undefined) yield ['openFiles', request.openFiles];
  if (request.onFull === 'block' || request.onFull === 'roll') yield ['hold', 1]; // until it is known that nobody reads
  if (request.onFull === 'roll') yield ['roll', 1];
  if (request.terminal) {
    yield ['rows', request.terminal.rows];
    yield ['columns', request.terminal.columns];
  }
  yield ['user', request.user];
  yield ['cwd', request.cwd];
  for (const argument of request.argv) yield ['arg', argument];
  for (const [name, value] of Object.entries(request.env)) yield ['env', `${name}=${value}`];
}
