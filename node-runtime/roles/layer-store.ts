/**
 * The layer store that the configuration names, for roles and for the operator's commands. Whatever it is, the directory `layers` of
 * this machine holds what is mounted: the store itself, or copies of what lies in the bucket.
 */
import { existsSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import { ADMISSION_LIMITS } from '#actors/edge/limits.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { LayerStore } from '#actors/ports/layer-store.ts';
import { connectJetStream, type JetStreamBus } from '#adapters/jetstream/mod.ts';
import { CacheRoom, type CacheRoomOptions, OBJECT_LAYER_LIMITS, ObjectLayerStore } from '#adapters/layers/object/mod.ts';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { connectBus } from '../bus/connect.ts';
import { whenBusAnswers } from '../bus/when-answers.ts';
import { type Config, pathsOf } from '../config.ts';
import { createLog, type Log } from '../log/log.ts';

const MIB = 1024 * 1024;
/** A command that people wait for says soon that there is no bus. */
const CONNECT_MS = 2_000;

export type OpenedLayerStore = { readonly store: LayerStore; close(): Promise<void> };

/** What a node says of its copies, so that they can be kept within the configured bound. */
export type CacheUse = Required<Pick<CacheRoomOptions, 'inUse' | 'releaseIdle'>>;

export const openLayerStore = async (config: Config, jetStream: Pick<JetStreamBus, 'bucket'>, log: Log, use?: CacheUse): Promise<OpenedLayerStore> => {
  const { layers: dir } = pathsOf(config);
  const local = new PosixLayerStore({ dir });
  const { layerStore } = config;
  if (layerStore.type === 'posix') return { store: local, close: async () => {} };
  const bucket = jetStream.bucket(layerStore.bucket);
  await whenBusAnswers(() => bucket.ensure(config.replicas), log);
  const room = use && roomOf(config, dir, local, use, log);
  const store = await ObjectLayerStore.open({
    bucket,
    cache: local,
    clock: systemClock,
    ...(room ? { room } : {}),
    report: ({ event, ...line }) => log.info(event, line),
  });
  const stop = room ? startSweep(store, log) : () => {};
  return {
    store,
    close: () => {
      stop();
      return store.close();
    },
  };
};

const roomOf = (config: Config, dir: string, cache: PosixLayerStore, use: CacheUse, log: Log): CacheRoom =>
  new CacheRoom({
    cache,
    maxBytes: config.layerCacheMiB * MIB,
    floorBytes: ADMISSION_LIMITS.diskFloorMiB * MIB,
    freeBytes: () => {
      const { bavail, bsize } = statfsSync(dir);
      return bavail * bsize;
    },
    ...use,
    onEvicted: ({ digest, sizeBytes }) => log.info('layer.evicted', { digest, sizeBytes }),
  });

const startSweep = (store: ObjectLayerStore, log: Log): (() => void) => {
  const sweep = (): void =>
    void store.sweep().then(
      (uploads) => (uploads > 0 ? log.info('layers.swept', { uploads }) : undefined),
      (thrown: unknown) => log.warn('layers.sweep_failed', { message: (thrown as Error).message }),
    );
  const timer = setInterval(sweep, OBJECT_LAYER_LIMITS.abandonedMs).unref();
  return () => clearInterval(timer);
};

/** For one command of an operator: by the operator's key where the store lies in the bus. BUS_UNAVAILABLE. */
export const withLayerStore = async <T>(config: Config, work: (store: LayerStore) => Promise<T>): Promise<T> => {
  const paths = pathsOf(config);
  if (config.layerStore.type === 'posix') return work(new PosixLayerStore({ dir: paths.layers }));
  const servers = config.servers?.split(',') ?? serversFromContext(paths.context);
  const key = join(paths.credentials, 'role-operator.nk');
  if (!servers || !existsSync(key))
    throw DsecError.of(
      'BUS_UNAVAILABLE',
      `the layer store lies in bucket ${config.layerStore.bucket} of the bus, which was never started from ${config.dataDir}`,
    );
  const log = createLog('layers', 'error');
  const connection = await connectBus({ servers, credentials: { nkeySeed: readFileSync(key, 'utf8').trim() } }, 'dsec-layers', log, CONNECT_MS);
  try {
    const jetStream = connectJetStream(connection, { readFrom: 'leader' });
    const { store, close } = await openLayerStore(config, jetStream, log);
    try {
      return await work(store);
    } finally {
      await close();
    }
  } finally {
    await connection.close();
  }
};

/** Where the bus of one machine listens. */
export const serversFromContext = (file: string): string[] | undefined =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { servers: string[] }).servers : undefined;
