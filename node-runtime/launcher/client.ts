/**
 * One connection of an Edge to its node's launcher: creates, ends and freezes sandboxes, mounts images.
 *
 * Every call is safe to repeat. It does not start the launcher (`process.ts` does), does not reconnect, and keeps no state
 * about sandboxes: the kernel does. @paper §3.3
 */
import { createConnection, type Socket } from 'node:net';
import { DsecError } from '#bus/errors.ts';
import { tracedPart } from '../tracing/spans.ts';
import { launcherError } from './launcher-errors.ts';
import { LAUNCHER_LIMITS } from './limits.ts';
import { ANSWER, encodeFrame, type Frame, type Pair, REQUEST, takeFrames, fieldOf } from './wire.ts';

export type LaunchSpec = {
  readonly id: string;
  readonly hostname: string;
  /** Its range of host ids: 100000 + slot × 65536 onwards. No two sandboxes of a node share one. */
  readonly slot: number;
  /** Digests, lowest first; each must be mounted. */
  readonly layers: readonly string[];
  /** Directories on one file system; made when missing, parents one level up too. */
  readonly upper: string;
  readonly work: string;
  /** Where Aether keeps output and exit records; given to the sandbox's root. */
  readonly execDir: string;
  /** Aether's socket, at most 107 bytes. */
  readonly socket: string;
  /**
   * With a disk limit: the image file of the sandbox's own file system, in the same directory as `upper`, and the empty one that it
   * is copied from. `upper` and `work` lie in it then.
   */
  readonly disk?: string | undefined;
  readonly diskTemplate?: string | undefined;
  readonly memoryMiB: number;
  /** 0 when absent. */
  readonly swapMiB?: number | undefined;
  readonly cpuMillis: number;
  /** 1 to 10,000; 100 when absent. */
  readonly cpuWeight?: number | undefined;
  readonly pids: number;
  /** The sandbox ends itself after this, launcher and Edge or not; 0: never. */
  readonly lifeSeconds: number;
};

/** What a sandbox left when nobody wrote it down; used only when the launcher has no record of the sandbox. */
export type DestroySpec = { readonly id: string; readonly upper?: string; readonly work?: string; readonly disk?: string; readonly socket?: string };
export type Launched = {
  readonly pid: number /** Clock ticks since boot, as in /proc/<pid>/stat: pid and start name a process for ever. */;
  readonly startTime: number;
};
/** `pid` 0: nothing runs, but something of it is left to destroy. */
export type Present = { readonly id: string; readonly pid: number };
export type SandboxStats = { readonly memoryBytes: number; readonly cpuUsec: number; readonly pids: number; readonly oomKills: number };
/** What a payload used before and after; what of it lies in swap now, what compressed copies of that take, what of files was dropped. */
export type Reclaimed = {
  readonly beforeBytes: number;
  readonly afterBytes: number;
  readonly swappedBytes: number;
  readonly costBytes: number;
  readonly droppedBytes: number;
};
export type LauncherInfo = { readonly pid: number; readonly cgroup: 'v2' | 'v1' | 'mixed'; readonly erofs: 'file' | 'loop'; readonly version: string };

type Pending = { readonly request: string; readonly resolve: (frame: Frame) => void; readonly reject: (error: Error) => void; readonly timer: NodeJS.Timeout };

const NO_INFO: LauncherInfo = { pid: 0, cgroup: 'v1', erofs: 'loop', version: '' };

export class LauncherClient {
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  readonly #onClose: (() => void)[] = [];
  readonly #onQuit: (() => void)[] = [];
  #info = NO_INFO;
  #rest: Buffer = Buffer.alloc(0);
  #lastId = 0;
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('error', () => {}); // 'close' follows, and says it
    socket.on('close', () => this.#onClosed());
  }

  /**
   * Connects and takes over as the Edge of this epoch; older Edges are cut off. EDGE_FENCED when a newer one has been here,
   * EDGE_UNAVAILABLE when no launcher listens.
   */
  static async connect(socketPath: string, epoch: number): Promise<LauncherClient> {
    const socket = await new Promise<Socket>((resolve, reject) => {
      const connecting = createConnection({ path: socketPath });
      connecting.once('error', (cause: NodeJS.ErrnoException) => reject(unreachable(socketPath, cause)));
      connecting.once('connect', () => {
        connecting.removeAllListeners('error');
        resolve(connecting);
      });
    });
    const client = new LauncherClient(socket);
    try {
      const frame = await client.#ask(REQUEST.hello, `hello of epoch ${epoch}`, [['epoch', epoch]]);
      client.#info = {
        pid: numberOf(frame, 'pid'),
        cgroup: fieldOf(frame, 'cgroup') as LauncherInfo['cgroup'],
        erofs: fieldOf(frame, 'erofs') as LauncherInfo['erofs'],
        version: fieldOf(frame, 'version') ?? '',
      };
      return client;
    } catch (thrown) {
      client.close();
      throw thrown;
    }
  }

  get info(): LauncherInfo {
    return this.#info;
  }

  get open(): boolean {
    return !this.#closed;
  }

  /** Requests that are not answered yet. */
  get waiting(): number {
    return this.#pending.size;
  }

  /** Idempotent: each digest is mounted once. `devices`: the data files that it stands on. LAYER_NOT_FOUND when a file is not there. */
  async mountImage(digest: string, path: string, devices: readonly string[] = []): Promise<void> {
    await this.#ask(REQUEST.mountImage, `mount image ${digest}`, [['digest', digest], ['path', path], ...devices.map((device) => ['device', device] as const)]);
  }

  /** OVERLOADED while sandboxes use it. */
  async umountImage(digest: string): Promise<void> {
    await this.#ask(REQUEST.umountImage, `unmount image ${digest}`, [['digest', digest]]);
  }

  async listImages(): Promise<string[]> {
    return valuesOf(await this.#ask(REQUEST.listImages, 'list images', []), 'digest');
  }

  /** Resolves when the sandbox takes commands. A live one answers at once; SANDBOX_ENDED after a destroy. */
  async launch(spec: LaunchSpec): Promise<Launched> {
    const { layers, execDir, ...rest } = spec;
    const given = Object.entries(rest).filter((pair): pair is [string, string | number] => pair[1] !== undefined);
    const pairs: Pair[] = [...given, ['execdir', execDir], ...layers.map((layer) => ['layer', layer] as const)];
    const frame = await tracedPart('launcher.launch', {}, () => this.#ask(REQUEST.launch, `launch ${spec.id}`, pairs));
    return { pid: numberOf(frame, 'pid'), startTime: numberOf(frame, 'startTime') };
  }

  /** Resolves when no process, cgroup or namespace of it is left. Leaves a tombstone: the id is never launched again. */
  async destroy(spec: DestroySpec): Promise<void> {
    await tracedPart('launcher.destroy', {}, () => this.#ask(REQUEST.destroy, `destroy ${spec.id}`, Object.entries(spec)));
  }

  /** Stops every command of the sandbox; its agent goes on. */
  async freeze(id: string): Promise<void> {
    await this.#ask(REQUEST.freeze, `freeze ${id}`, [['id', id]]);
  }

  async thaw(id: string): Promise<void> {
    await this.#ask(REQUEST.thaw, `thaw ${id}`, [['id', id]]);
  }

  /**
   * Gives the memory of a frozen sandbox back, to swap where there is some. Ended by a thaw or a destroy (OVERLOADED); repeating
   * it takes what has come since.
   */
  async reclaim(id: string): Promise<Reclaimed> {
    const frame = await this.#ask(REQUEST.reclaim, `reclaim memory of ${id}`, [['id', id]], LAUNCHER_LIMITS.reclaimMs);
    return {
      beforeBytes: numberOf(frame, 'beforeBytes'),
      afterBytes: numberOf(frame, 'afterBytes'),
      swappedBytes: numberOf(frame, 'swappedBytes'),
      costBytes: numberOf(frame, 'costBytes'),
      droppedBytes: numberOf(frame, 'droppedBytes'),
    };
  }

  /** Brings pages back from swap before they are touched, at most so many. Answers with the bytes it asked the kernel for. */
  async prefetch(id: string, mostMiB: number): Promise<number> {
    const pairs = [
      ['id', id],
      ['mostMiB', mostMiB],
    ] as const;
    return numberOf(await this.#ask(REQUEST.prefetch, `prefetch memory of ${id}`, pairs, LAUNCHER_LIMITS.reclaimMs), 'advisedBytes');
  }

  /** Makes the node's own compressed swap, or finds it again. */
  async swapOn(sizeMiB: number): Promise<{ readonly device: string; readonly bytes: number }> {
    const frame = await this.#ask(REQUEST.swapOn, 'make swap', [['sizeMiB', sizeMiB]], LAUNCHER_LIMITS.swapMs);
    return { device: fieldOf(frame, 'device') ?? '', bytes: numberOf(frame, 'bytes') };
  }

  /** Removes it; what lies in it comes back to memory. Done when there is none. */
  async swapOff(): Promise<void> {
    await this.#ask(REQUEST.swapOff, 'remove swap', [], LAUNCHER_LIMITS.swapMs);
  }

  async stats(id: string): Promise<SandboxStats> {
    const frame = await this.#ask(REQUEST.stats, `stats of ${id}`, [['id', id]]);
    const [memoryBytes, cpuUsec, pids, oomKills] = ['memoryBytes', 'cpuUsec', 'pids', 'oomKills'].map((key) => numberOf(frame, key)) as [
      number,
      number,
      number,
      number,
    ];
    return { memoryBytes, cpuUsec, pids, oomKills };
  }

  /** What the kernel really has, whatever anybody remembers. */
  async list(): Promise<Present[]> {
    const frame = await this.#ask(REQUEST.list, 'list sandboxes', []);
    return valuesOf(frame, 'sandbox').map((text) => {
      const [id = '', pid = ''] = text.split(' ');
      return { id, pid: Number(pid) };
    });
  }

  /** Drops the tombstone: the id may be launched again. */
  async forget(id: string): Promise<void> {
    await this.#ask(REQUEST.forget, `forget ${id}`, [['id', id]]);
  }

  /** Ends the launcher. Live sandboxes go on. */
  async quit(): Promise<void> {
    const gone = new Promise<void>((resolve) => this.onClose(resolve));
    await this.#ask(REQUEST.quit, 'quit', []);
    await gone;
    for (const listener of this.#onQuit) listener();
  }

  /** Called when this client has made the launcher quit. */
  onQuit(listener: () => void): void {
    this.#onQuit.push(listener);
  }

  /** Called once, when the connection ends for whatever reason; at once when it has. */
  onClose(listener: () => void): void {
    if (this.#closed) listener();
    else this.#onClose.push(listener);
  }

  close(): void {
    this.#socket.destroy();
  }

  #ask(type: number, request: string, pairs: readonly Pair[], answerMs: number = LAUNCHER_LIMITS.answerMs): Promise<Frame> {
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

const valuesOf = (frame: Frame, key: string): string[] => frame.pairs.filter(([k]) => k === key).map(([, value]) => value);

const numberOf = (frame: Frame, key: string): number => {
  const value = Number(fieldOf(frame, key));
  if (!Number.isSafeInteger(value)) throw DsecError.of('INTERNAL', `the launcher's answer has no number ${key}; are launcher and Edge of one version?`);
  return value;
};

const lost = (request: string): DsecError =>
  DsecError.of('EDGE_UNAVAILABLE', `${request}: the connection to the launcher ended; whether it was done is unknown, repeat it over a new connection`);

const unreachable = (path: string, cause: NodeJS.ErrnoException): DsecError =>
  DsecError.of('EDGE_UNAVAILABLE', `no launcher listens at ${path} (${cause.code}); start one`, {
    outcome: 'not_applied',
    details: { errno: cause.code },
    cause,
  });
