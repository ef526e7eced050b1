/**
 * Which data files an EROFS image stands on: its own device table says so, by their digests. Images of other makers have none, or
 * tags that are no digests and mean nothing here.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import type { LayerStore } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import { LayerDigest } from '#bus/ids.ts';

/** Offsets in the superblock, which begins at 1024: erofs.h of the packer. */
const SUPER_OFFSET = 1_024;
const MAGIC = 0xe0f5e1e2;
const INCOMPAT_OFFSET = 80;
const DEVICES_OFFSET = 86;
const SLOT_OFFSET = 88;
const DEVICE_TABLE = 0x8;
const SLOT_BYTES = 128;
const TAG_BYTES = 64;
/** packer/limits.h */
const DEVICES_MAX = 64;
const HEAD_BYTES = SUPER_OFFSET + (DEVICES_MAX + 2) * SLOT_BYTES;

/** In the order of the table; empty for an image that holds everything itself, and for what is no image. */
export const dataFilesOf = (imagePath: string): LayerDigest[] => {
  const head = Buffer.alloc(HEAD_BYTES);
  const fd = openSync(imagePath, 'r');
  let length: number;
  try {
    length = readSync(fd, head, 0, head.byteLength, 0);
  } finally {
    closeSync(fd);
  }
  return dataFilesOfHead(head.subarray(0, length));
};

/** The same of an image in a store, wherever that lies; empty when it has gone meanwhile. */
export const storedDataFilesOf = async (store: Pick<LayerStore, 'read'>, digest: LayerDigest): Promise<LayerDigest[]> => {
  const parts: Buffer[] = [];
  try {
    for await (const part of (await store.read(digest)) as AsyncIterable<Buffer>) {
      parts.push(part);
      if (parts.reduce((n, { byteLength }) => n + byteLength, 0) >= HEAD_BYTES) break;
    }
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code === 'LAYER_NOT_FOUND') return [];
    throw thrown;
  }
  return dataFilesOfHead(Buffer.concat(parts));
};

/** The same of the image's first bytes. */
export const dataFilesOfHead = (head: Buffer): LayerDigest[] => {
  if (head.byteLength < SUPER_OFFSET + 128 || head.readUInt32LE(SUPER_OFFSET) !== MAGIC) return [];
  if ((head.readUInt32LE(SUPER_OFFSET + INCOMPAT_OFFSET) & DEVICE_TABLE) === 0) return [];
  const count = Math.min(head.readUInt16LE(SUPER_OFFSET + DEVICES_OFFSET), DEVICES_MAX);
  const first = head.readUInt16LE(SUPER_OFFSET + SLOT_OFFSET) * SLOT_BYTES;
  return Array.from({ length: count }, (_, i) => head.toString('latin1', first + i * SLOT_BYTES, first + i * SLOT_BYTES + TAG_BYTES)).flatMap((tag) => {
    const digest = LayerDigest.safeParse(`sha256:${tag}`);
    return digest.success ? [digest.data] : [];
  });
};
