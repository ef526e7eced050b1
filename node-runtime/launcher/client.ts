/**
 * One connection of an Edge to its node's launcher: creates, ends and freezes sandboxes, mounts images.
 *
 * Every call is safe to repeat. It does not start the launcher (`process.ts` does), does not reconnect, and keeps no state
 * about sandboxes: the kernel does. @paper §3.3
 */
import { tracedPart } from '../tracing/spans.ts';
import type { DestroySpec, Launched, LauncherInfo, LaunchSpec, Present, Reclaimed, SandboxStats } from './answers.ts';
import { LauncherConnection } from './connection.ts';
import { LAUNCHER_LIMITS } from './limits.ts';
import { fieldOf, type Frame, type Pair, REQUEST } from './wire.ts';
import { DsecError } from '#bus/errors.ts';

const NO_INFO: LauncherInfo = { pid: 0, cgroup: 'v1', erofs: 'loop', version: '' };

export class LauncherClient {
  readonly #connection: LauncherConnection;
  readonly #onQuit: (() => void)[] = [];
  #info = NO_INFO;

  private constructor(connection: LauncherConnection) {
    this.#connection = connection;
  }

  /**
   * Connects and takes over as the Edge of this epoch; older Edges are cut off. EDGE_FENCED when a newer one has been here,
   * EDGE_UNAVAILABLE when no launcher listens, HOST_UNFIT when it has another control group than `cgroupName` and so is another platform's.
   */
  static async connect(socketPath: string, epoch: number, cgroupName?: string): Promise<LauncherClient> {
    const client = new LauncherClient(await LauncherConnection.open(socketPath));
    try {
      const frame = await client.#connection.ask(REQUEST.hello, `hello of epoch ${epoch}`, [
        ['epoch', epoch],
        ...(cgroupName === undefined ? [] : [['group', cgroupName] as const]),
      ]);
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
    return this.#connection.isOpen;
  }

  /** Requests that are not answered yet. */
  get waiting(): number {
    return this.#connection.waiting;
  }

  /** Idempotent: each digest is mounted once. `devices`: the data files that it stands on. LAYER_NOT_FOUND when a file is not there. */
  async mountImage(digest: string, path: string, devices: readonly string[] = []): Promise<void> {
    await this.#connection.ask(REQUEST.mountImage, `mount image ${digest}`, [
      ['digest', digest],
      ['path', path],
      ...devices.map((device) => ['device', device] as const),
    ]);
  }

  /** OVERLOADED while sandboxes use it. */
  async umountImage(digest: string): Promise<void> {
    await this.#connection.ask(REQUEST.umountImage, `unmount image ${digest}`, [['digest', digest]]);
  }

  async listImages(): Promise<string[]> {
    return valuesOf(await this.#connection.ask(REQUEST.listImages, 'list images', []), 'digest');
  }

  /** Resolves when the sandbox takes commands. A live one answers at once; SANDBOX_ENDED after a destroy. */
  async launch(spec: LaunchSpec): Promise<Launched> {
    const { layers, execDir, ...rest } = spec;
    const given = Object.entries(rest).filter((pair): pair is [string, string | number] => pair[1] !== undefined);
    const pairs: Pair[] = [...given, ['execdir', execDir], ...layers.map((layer) => ['layer', layer] as const)];
    const frame = await tracedPart('launcher.launch', {}, () => this.#connection.ask(REQUEST.launch, `launch ${spec.id}`, pairs));
    return { pid: numberOf(frame, 'pid'), startTime: numberOf(frame, 'startTime') };
  }

  /** Resolves when no process, cgroup or namespace of it is left. Leaves a tombstone: the id is never launched again. */
  async destroy(spec: DestroySpec): Promise<void> {
    await tracedPart('launcher.destroy', {}, () => this.#connection.ask(REQUEST.destroy, `destroy ${spec.id}`, Object.entries(spec)));
  }

  /** Stops every command of the sandbox; its agent goes on. */
  async freeze(id: string): Promise<void> {
    await this.#connection.ask(REQUEST.freeze, `freeze ${id}`, [['id', id]]);
  }

  async thaw(id: string): Promise<void> {
    await this.#connection.ask(REQUEST.thaw, `thaw ${id}`, [['id', id]]);
  }

  /**
   * Gives the memory of a frozen sandbox back, to swap where there is some. Ended by a thaw or a destroy (OVERLOADED); repeating
   * it takes what has come since.
   */
  async reclaim(id: string): Promise<Reclaimed> {
    const frame = await this.#connection.ask(REQUEST.reclaim, `reclaim memory of ${id}`, [['id', id]], LAUNCHER_LIMITS.reclaimMs);
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
    return numberOf(await this.#connection.ask(REQUEST.prefetch, `prefetch memory of ${id}`, pairs, LAUNCHER_LIMITS.reclaimMs), 'advisedBytes');
  }

  /** Makes the node's own compressed swap, or finds it again. */
  async swapOn(sizeMiB: number): Promise<{ readonly device: string; readonly bytes: number }> {
    const frame = await this.#connection.ask(REQUEST.swapOn, 'make swap', [['sizeMiB', sizeMiB]], LAUNCHER_LIMITS.swapMs);
    return { device: fieldOf(frame, 'device') ?? '', bytes: numberOf(frame, 'bytes') };
  }

  /** Removes it; what lies in it comes back to memory. Done when there is none. */
  async swapOff(): Promise<void> {
    await this.#connection.ask(REQUEST.swapOff, 'remove swap', [], LAUNCHER_LIMITS.swapMs);
  }

  async stats(id: string): Promise<SandboxStats> {
    const frame = await this.#connection.ask(REQUEST.stats, `stats of ${id}`, [['id', id]]);
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
    const frame = await this.#connection.ask(REQUEST.list, 'list sandboxes', []);
    return valuesOf(frame, 'sandbox').map((text) => {
      const [id = '', pid = ''] = text.split(' ');
      return { id, pid: Number(pid) };
    });
  }

  /** Drops the tombstone: the id may be launched again. */
  async forget(id: string): Promise<void> {
    await this.#connection.ask(REQUEST.forget, `forget ${id}`, [['id', id]]);
  }

  /** Ends the launcher. Live sandboxes go on. */
  async quit(): Promise<void> {
    const gone = new Promise<void>((resolve) => this.onClose(resolve));
    await this.#connection.ask(REQUEST.quit, 'quit', []);
    await gone;
    for (const listener of this.#onQuit) listener();
  }

  /** Called when this client has made the launcher quit. */
  onQuit(listener: () => void): void {
    this.#onQuit.push(listener);
  }

  /** Called once, when the connection ends for whatever reason; at once when it has. */
  onClose(listener: () => void): void {
    this.#connection.onClose(listener);
  }

  close(): void {
    this.#connection.close();
  }
}

const valuesOf = (frame: Frame, key: string): string[] => frame.pairs.filter(([k]) => k === key).map(([, value]) => value);

const numberOf = (frame: Frame, key: string): number => {
  const value = Number(fieldOf(frame, key));
  if (!Number.isSafeInteger(value)) throw DsecError.of('INTERNAL', `the launcher's answer has no number ${key}; are launcher and Edge of one version?`);
  return value;
};
