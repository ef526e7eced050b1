/** Looks into images the way a sandbox would: really mounted, in a mount namespace that ends with the look. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Runs a shell script with the images stacked as a sandbox has them, lowest first, an empty upper above; `$M` is where.
 * One image alone is mounted without an overlay.
 */
export const inMounted = async (images: readonly string[], script: string): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'dsec-mounted-'));
  try {
    const { stdout } = await run('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', `${mountAll(directory, images)}\n${script}`], {
      maxBuffer: 16 * 1024 * 1024,
    });
    return stdout;
  } finally {
    await rm(directory, { recursive: true });
  }
};

const mountAll = (directory: string, images: readonly string[]): string => {
  const lines = [`mount -t tmpfs none ${directory}`, `cd ${directory}`, ...images.map((image, i) => `mkdir l${i}; mount -t erofs -o ro,loop '${image}' l${i}`)];
  if (images.length === 1) return [...lines, `M=${directory}/l0`].join('\n');
  const lower = images
    .map((_, i) => `l${i}`)
    .reverse()
    .join(':');
  return [...lines, `mkdir u w m; mount -t overlay none -o lowerdir=${lower},upperdir=u,workdir=w m`, `M=${directory}/m`].join('\n');
};

/** Everything about every file of a tree that an image must keep. */
export const MANIFEST = String.raw`(cd "$M" && find . -mindepth 1 -printf '%P|%y|%m|%U:%G|%n|%l|%T@\n' | LC_ALL=C sort)`;
