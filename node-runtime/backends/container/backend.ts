/**
 * The container backend: launcher for birth and death, channels (`channels.ts`) for life, rest (`rests.ts`) between.
 *
 * Owns the files of each sandbox (`paths.ts`) and the mounted images they stand on.
 * Knows nothing of states and deadlines. @paper §2.2 §3.3 §5.1
 */
import { mkdirSync } from 'node:fs';
import { DsecError, type WireError } from '#bus/errors.ts';
import type { LayerDigest, SandboxId } from '#bus/ids.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { Overtaking, SnapshotOrder } from '#actors/ports/sandbox-backend.ts';
import type { LauncherClient } from '../../launcher/client.ts';
import type { OpHandler } from '../../roles/edge/ops.ts';
import { Semaphore } from '../../roles/semaphore.ts';
import type { Snapshotter, SnapshotResult } from '../../snapshots/snapshotter.ts';
import type { NodeBackend } from '../node-backend.ts';
import { Channels, type ChannelsOptions, isLive } from './channels.ts';
import type { DiskTemplates } from './disk-templates.ts';
import { Freezer } from './freezer.ts';
import { CONTAINER_LIMITS } from './limits.ts';
import { handlerOf } from './operations.ts';
import { sandboxPaths, uniquePart } from './paths.ts';
import { Rests, type RestsOptions } from './rests.ts';

export type ImageMounts = {
  /** Makes sure that a layer is mounted on this node and counts the sandbox as its user. */
  acquire(digest: LayerDigest, id: SandboxId): Promise<void>;
  release(id: SandboxId): Promise<void>;
};

export type ContainerBackendOptions = ChannelsOptions &
  Pick<RestsOptions, 'memory' | 'refusalOfResume'> & {
    /** The launcher's client; a new one after the launcher died. Rejects while there is none. */
    readonly launcher: () => Promise<LauncherClient>;
    readonly images: ImageMounts;
    readonly disks: Pick<DiskTemplates, 'pathFor'>;
    readonly snapshots: Snapshotter;
  };

export class ContainerBackend implements NodeBackend {
  readonly #o: ContainerBackendOptions;
  readonly #launches = new Semaphore(CONTAINER_LIMITS.launchesInFlight);
  readonly #channels: Channels;
  /** Who wants the commands of which sandbox at rest. */
  readonly #freezer: Freezer;
  readonly #rests: Rests;

  constructor(options: ContainerBackendOptions) {
    this.#o = options;
    this.#channels = new Channels(options);
    this.#freezer = new Freezer(options.launcher);
    this.#rests = new Rests({ ...options, freezer: this.#freezer, channels: this.#channels });
  }

  /** Mounted at once, so that they are in use, and stay, until the launch. */
  ensurePrepared(sandbox: SandboxState, { signal }: Overtaking): Promise<void> {
    return this.#mountLayers(sandbox, signal);
  }

  ensureLaunched(sandbox: SandboxState, { signal }: Overtaking): Promise<{ readonly pid: number }> {
    return this.#launches.run(async () => {
      if (signal.aborted) throw DsecError.of('CANCELLED', `launch of ${sandbox.id} was overtaken by its end`);
      const paths = sandboxPaths(this.#o, sandbox.id);
      mkdirSync(paths.exec, { recursive: true, mode: 0o711 });
      await this.#mountLayers(sandbox, signal);
      const { diskMiB, ...limits } = sandbox.spec.limits;
      const disk = diskMiB === null ? {} : { disk: paths.disk, diskTemplate: await this.#o.disks.pathFor(diskMiB) };
      const launcher = await this.#o.launcher();
      const { pid } = await launcher.launch({
        id: sandbox.id,
        hostname: sandbox.spec.hostname ?? `sb-${uniquePart(sandbox.id).slice(0, 12)}`,
        slot: sandbox.slot,
        layers: sandbox.spec.layers,
        upper: paths.upper,
        work: paths.work,
        execDir: paths.exec,
        socket: paths.socket,
        ...disk,
        memoryMiB: limits.memoryMiB,
        swapMiB: limits.swapMiB,
        cpuMillis: limits.cpuMillis,
        cpuWeight: limits.cpuWeight,
        pids: limits.pids,
        lifeSeconds: this.#channels.secondsToHardEnd(sandbox),
      });
      this.#freezer.born(sandbox.id);
      return { pid };
    });
  }

  /** What holds for a sandbox from now on; whether its end is the end of a life decides what its commands are told. */
  follow(sandbox: SandboxState): void {
    this.#channels.follow(sandbox);
  }

  async watch(sandbox: SandboxState, frozen: boolean | null, { signal }: Overtaking): Promise<WireError | null> {
    const attached = await this.#channels.attach(sandbox);
    if (!isLive(attached)) return attached;
    if (frozen !== null) await this.#rests.settle(sandbox.id, attached, frozen);
    if (signal.aborted) return null;
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(null), { once: true });
      void attached.gone.then((error) => {
        this.#channels.drop(sandbox.id, attached);
        resolve(signal.aborted ? null : error);
      });
    });
  }

  /** What answers operations on a live sandbox: commands, files, ports. */
  async handler(id: SandboxId): Promise<OpHandler | undefined> {
    const live = await this.#channels.get(id);
    return live && handlerOf(live.chronus, live);
  }

  /** What still answers about a sandbox that has ended: its commands. */
  endedHandler(sandbox: SandboxState): OpHandler | undefined {
    const chronus = this.#channels.ended(sandbox);
    return chronus && handlerOf(chronus, undefined);
  }

  activityAt(id: SandboxId): number {
    return this.#channels.activityAt(id);
  }

  async ensureDestroyed(sandbox: SandboxState): Promise<void> {
    await this.destroyUnknown(sandbox.id);
    this.#channels.forgetState(sandbox.id);
    await this.#o.images.release(sandbox.id);
  }

  async destroyUnknown(id: SandboxId): Promise<void> {
    const launcher = await this.#o.launcher();
    const { upper, work, disk, socket } = sandboxPaths(this.#o, id);
    this.#channels.ending(id);
    await launcher.destroy({ id, upper, work, disk, socket });
    this.#channels.end(id);
    this.#freezer.forget(id);
  }

  async present(): Promise<SandboxId[]> {
    return (await (await this.#o.launcher()).list()).map(({ id }) => id as SandboxId);
  }

  async freezeAll(frozen: boolean): Promise<void> {
    await this.#rests.freezeAll(await this.present(), frozen);
  }

  ensurePaused(sandbox: SandboxState): Promise<{ readonly memoryGivenBackMiB: number | null }> {
    return this.#rests.pause(sandbox);
  }

  ensureResumed(sandbox: SandboxState): Promise<void> {
    return this.#rests.resume(sandbox);
  }

  /** What paused sandboxes were swapped to goes, at the node's clean end. */
  removeSwap(): Promise<void> {
    return this.#o.memory.removeSwap();
  }

  /** A paused sandbox rests already, and goes on resting. */
  ensureSnapshot(sandbox: SandboxState, order: SnapshotOrder, { signal }: Overtaking): Promise<SnapshotResult> {
    const { id, spec } = sandbox;
    const { upper, disk } = sandboxPaths(this.#o, id);
    return this.#o.snapshots.take(sandbox, order, {
      upper: spec.limits.diskMiB === null ? { directory: upper } : { disk },
      merged: `/proc/${sandbox.pid}/root`,
      rest: async () => {
        if (sandbox.returnTo === 'paused') await this.#freezer.hold(id, 'paused');
        await this.#freezer.hold(id, 'snapshot');
      },
      goOn: () => this.#freezer.release(id, 'snapshot'),
      signal,
    });
  }

  /** Whoever comes after the end of the sandbox must not count it as a user again. */
  async #mountLayers({ id, spec }: SandboxState, signal: AbortSignal): Promise<void> {
    for (const digest of spec.layers) {
      if (signal.aborted) throw DsecError.of('CANCELLED', `launch of ${id} was overtaken by its end`);
      await this.#o.images.acquire(digest, id);
    }
  }

  close(): void {
    this.#channels.close();
  }
}
