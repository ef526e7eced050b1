/** Public face of the layer store in JetStream's object store. */
export { CacheRoom, type CacheRoomOptions } from './cache-room.ts';
export { OBJECT_LAYER_LIMITS } from './limits.ts';
export { ObjectLayerStore, type ObjectLayerStoreOptions } from './object-layer-store.ts';
export type { TransferReport } from './transfers.ts';
