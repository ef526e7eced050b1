/**
 * Layers that nobody has waited for: written, named by their digest, but perhaps not on the disk yet. Each has a mark that says which
 * machine wrote it, and in which of its lives. After a power cut the next to open the store there removes what was marked, because
 * what a digest names must be whole (INV-LAYER).
 *
 * The mark is made before the layer has its name and goes after the layer is durable, so no unmarked layer is ever in doubt.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { open, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { LayerDigest } from '#bus/ids.ts';
import { blobPath, hexOf, type StoreLayout } from './store-layout.ts';
import { syncDirectory } from './temp-files.ts';

const markOf = (layout: StoreLayout, digest: LayerDigest): string => join(layout.volatile, hexOf(digest));

const thisLife = (): string => `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`;

export const markVolatile = (layout: StoreLayout, digest: LayerDigest): Promise<void> => writeFile(markOf(layout, digest), thisLife());

export const isVolatile = (layout: StoreLayout, digest: LayerDigest): Promise<boolean> =>
  stat(markOf(layout, digest)).then(
    () => true,
    () => false,
  );

/** Makes it durable; nothing to do for most layers. */
export const settle = async (layout: StoreLayout, digest: LayerDigest): Promise<void> => {
  if (!(await isVolatile(layout, digest))) return;
  const handle = await open(blobPath(layout, digest), 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectory(layout.blobs);
  await unmark(layout, digest);
};

export const unmark = (layout: StoreLayout, digest: LayerDigest): Promise<void> => rm(markOf(layout, digest), { force: true });

/** All marks, by the digits of their digests. */
export const volatileHexes = (layout: StoreLayout): ReadonlySet<string> => new Set(readdirSync(layout.volatile));

/** Removes what an earlier life of this machine had not made durable. Synchronous: it is part of opening the store. */
export const sweepVolatile = (layout: StoreLayout): number => {
  const life = thisLife();
  const [host] = life.split(' ');
  let removed = 0;
  for (const hex of readdirSync(layout.volatile)) {
    const mark = join(layout.volatile, hex);
    const written = readFileSync(mark, 'utf8');
    if (written === life || written.split(' ')[0] !== host) continue;
    rmSync(blobPath(layout, `sha256:${hex}` as LayerDigest), { force: true });
    rmSync(mark, { force: true });
    removed += 1;
  }
  return removed;
};
