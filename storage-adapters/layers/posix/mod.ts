/** Public face of the posix layer store; the lock serves other files that a dead holder must not keep. */
export { type HeldLock, lockFile, type WaitOptions } from './file-lock.ts';
export { isStoreAway, layerStoreError, storeAway } from './fs-errors.ts';
export { PosixLayerStore } from './posix-layer-store.ts';
