/** What this Edge drives on its node: the launcher under its generation, mounted images, the container backend. */
import { mkdirSync } from 'node:fs';
import { Effect, type Scope } from 'effect';
import type { LayerDigest } from '#bus/ids.ts';
import { refusalOfResume } from '#actors/edge/resume.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { LayerStore } from '#actors/ports/layer-store.ts';
import type { JetStreamBus } from '#adapters/jetstream/mod.ts';
import { ContainerBackend } from '../../backends/container/backend.ts';
import { PausedMemory } from '../../backends/container/paused-memory.ts';
import type { NodeBackend } from '../../backends/node-backend.ts';
import { DiskTemplates } from '../../backends/container/disk-templates.ts';
import { type Config, cgroupNameOf, pathsOf } from '../../config.ts';
import { dataFilesOf } from '../../images/data-files.ts';
import { bringHere, isHere, withDataFiles } from '../../images/local.ts';
import { type ImageMounter, ImageMounts } from '../../images/mounts.ts';
import type { LauncherClient } from '../../launcher/client.ts';
import type { Log } from '../../log/log.ts';
import { projectRoot } from '../../project-root.ts';
import { Snapshotter } from '../../snapshots/snapshotter.ts';
import { type CacheUse, type OpenedLayerStore, openLayerStore } from '../layer-store.ts';
import { acquire, step } from '../scope.ts';
import { availableMemoryMiB, pauseSwapMiB } from './capacity.ts';
import { LauncherHolder } from './launcher-holder.ts';

export type Node = {
  readonly store: Pick<LayerStore, 'has' | 'catchUp'>;
  /** Whether all of them can be mounted without fetching anything. */
  readonly layersLocal: (layers: readonly LayerDigest[]) => boolean;
  /** Where captures for forks are put; absent where sandboxes are not real. */
  readonly captures?: LayerStore;
  readonly images: Pick<ImageMounts, 'restore' | 'sweep' | 'ready'>;
  readonly backend: NodeBackend;
  readonly launcher: Pick<LauncherHolder, 'close' | 'waiting'>;
};

/** Live sandboxes and the launcher outlive the scope; only this process's hold on them ends with it. */
export const openNode = (
  config: Config,
  generation: number,
  bus: { readonly records: CommandRecords; readonly layers: Pick<JetStreamBus, 'bucket'> },
  clock: Clock,
  log: Log,
): Effect.Effect<Node, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const paths = pathsOf(config);
    for (const dir of [paths.sandboxes, paths.trash, paths.sockets, paths.runDir]) mkdirSync(dir, { recursive: true, mode: 0o711 });
    const use: CacheUse = { inUse: () => withDataFiles(store, images.held()), releaseIdle: () => images.releaseIdle() };
    const { store }: OpenedLayerStore = yield* acquire(
      () => openLayerStore(config, bus.layers, log, use),
      (layers) => layers.close(),
    );
    const options = {
      runDir: paths.runDir,
      cgroupName: cgroupNameOf(config),
      trashDir: paths.trash,
      sandboxesDir: paths.sandboxes,
      epoch: generation,
      binDir: `${projectRoot()}/build/native`,
    };
    const launcher: LauncherHolder = yield* acquire(
      () => new LauncherHolder(options, log, (client) => images.remount(mounterOf(store, async () => client))),
      (holder) => holder.close(false),
    );
    const images: ImageMounts = new ImageMounts({
      bring: (digest) => bringHere(store, digest),
      pathOf: (digest) => store.pathOf(digest),
      mounter: mounterOf(store, () => launcher.get()),
      onUnmountFailed: (digest, error) => log.debug('image.kept', { digest, message: (error as Error).message }),
    });
    const backend = yield* acquire(
      () =>
        new ContainerBackend({
          sandboxesDir: paths.sandboxes,
          socketsDir: paths.sockets,
          launcher: () => launcher.get(),
          images,
          disks: new DiskTemplates(paths.disks),
          snapshots: new Snapshotter(store, clock),
          memory: new PausedMemory({ launcher: () => launcher.get(), swapMiB: () => pauseSwapMiB(config), availableMiB: availableMemoryMiB, log }),
          refusalOfResume: ({ id, memoryGivenBackMiB }) =>
            refusalOfResume(id, memoryGivenBackMiB, {
              edge: config.edgeName,
              availableMemoryMiB: availableMemoryMiB(),
              floorMiB: config.resumeFloorMiB,
            }),
          outputRetentionMs: config.outputRetentionMs,
          records: bus.records,
          clock,
          log,
        }),
      (b) => b.close(),
    );
    yield* step(() => launcher.get());
    const layersLocal = (layers: readonly LayerDigest[]): boolean => layers.every((digest) => images.isMounted(digest) || isHere(store, digest));
    return { store, layersLocal, captures: store, images, backend, launcher };
  });

/** The launcher's side of mounted images, by whichever client is at hand. */
const mounterOf = (store: LayerStore, launcher: () => Promise<LauncherClient>): ImageMounter => ({
  mountImage: async (digest, path) => {
    const devices = dataFilesOf(path).map((data) => store.pathOf(data));
    return (await launcher()).mountImage(digest, path, devices);
  },
  umountImage: async (digest) => (await launcher()).umountImage(digest),
  listImages: async () => (await (await launcher()).listImages()) as LayerDigest[],
});
