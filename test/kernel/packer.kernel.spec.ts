/** The packer on trees that no sandbox makes easily: what cannot be kept is refused by name, and equal trees give equal bytes. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { LayerDigest } from '#bus/ids.ts';
import { dataFilesOf } from '#runtime/images/data-files.ts';
import { firstIdOf, Packer, type PackOrder } from '#runtime/snapshots/packer.ts';
import { refusal } from '#test/helpers/refusal.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-pack-'));
  return () => rmSync(dir, { recursive: true, force: true });
});

const digestOf = (path: string): LayerDigest => `sha256:${createHash('sha256').update(readFileSync(path)).digest('hex')}` as LayerDigest;

/** A tree that belongs to the sandbox of that slot, every time the same. */
const treeOf = (name: string, slot: number, fill: (root: string) => void): PackOrder => {
  const root = join(dir, name);
  mkdirSync(root);
  fill(root);
  execFileSync('sh', ['-euc', 'chown -hR "$1:$1" "$0"; find "$0" -exec touch -h -d 2001-02-03T04:05:06.5Z {} +', root, String(firstIdOf(slot))]);
  return {
    what: 'a tree',
    upper: { directory: root },
    firstId: firstIdOf(slot),
    image: `${root}.erofs`,
    data: `${root}.data`,
    uuid: '0'.repeat(32),
    earlier: [],
    rules: [],
  };
};

const pack = async (order: PackOrder) => {
  const packer = new Packer(order);
  try {
    await packer.prepare();
    const taken = await packer.take();
    const written = await packer.written();
    expect(written).toEqual({ data: taken.storedBytes + taken.clonedBytes > 0 ? digestOf(order.data) : null, image: digestOf(order.image) });
    return { taken, ...written };
  } finally {
    await packer.close();
  }
};

const names = Array.from({ length: 300 }, (_, i) => `${'n'.repeat(i % 40)}${(i * 7_919) % 1_000}`);
const fillWith = (order: readonly string[]) => (root: string) => {
  mkdirSync(join(root, 'sub/deep'), { recursive: true });
  for (const name of order) writeFileSync(join(root, 'sub', name), name.repeat(50));
  linkSync(join(root, 'sub', names[0] as string), join(root, 'hard'));
  symlinkSync('x'.repeat(3_000), join(root, 'soft'));
  writeFileSync(join(root, 'large'), Buffer.alloc(300_001, 'abcdefg'));
};

test('equal trees give equal bytes, whatever range they belong to and in whatever order they were made', async () => {
  const first = await pack(treeOf('first', 0, fillWith(names)));
  const second = await pack(treeOf('second', 9_000, fillWith([...names].reverse())));
  expect([second.image, second.data]).toEqual([first.image, first.data]);
  expect(dataFilesOf(join(dir, 'first.erofs'))).toEqual([first.data]);
});

test('what an earlier data file holds is not stored again; what no file uses is not named', async () => {
  const order = treeOf('first', 0, fillWith(names));
  const first = await pack(order);
  const earlier = [{ digest: first.data as LayerDigest, path: order.data }];
  const same = await pack({ ...order, image: join(dir, 'same.erofs'), data: join(dir, 'same.data'), earlier });
  expect([same.taken.storedBytes, same.image]).toEqual([0, first.image]);
  const other = treeOf('other', 0, (root) => writeFileSync(join(root, 'new'), 'nothing of before'));
  const fresh = await pack({ ...other, earlier });
  expect(dataFilesOf(other.image)).toEqual([fresh.data]);
  writeFileSync(join(dir, 'damaged'), readFileSync(order.data).subarray(0, 10_000));
  const without = await pack({
    ...order,
    image: join(dir, 'w.erofs'),
    data: join(dir, 'w.data'),
    earlier: [{ digest: first.data as LayerDigest, path: join(dir, 'damaged') }],
  });
  expect(without.image).toBe(first.image);
});

test.each([
  ['a file of somebody else', 'chown 42:42 "$0/a/b"', '/a/b'],
  ['a group of somebody else', 'chgrp 5 "$0/a/b"', '/a/b'],
  ['data that lies in a layer below', `python3 -c 'import os, sys; os.setxattr(sys.argv[1], "trusted.overlay.metacopy", b"")' "$0/a/b"`, '/a/b'],
  ['a mark that is not known', `python3 -c 'import os, sys; os.setxattr(sys.argv[1], "trusted.overlay.later", b"y")' "$0/a"`, '/a'],
] as const)('%s is refused by name', async (_, script, path) => {
  const order = treeOf('odd', 0, (root) => {
    mkdirSync(join(root, 'a'));
    writeFileSync(join(root, 'a/b'), 'x');
  });
  execFileSync('sh', ['-euc', script, join(dir, 'odd')]);
  const error = await refusal(pack(order));
  expect([error.code, error.details['path']]).toEqual(['UNPORTABLE_FILE', path]);
});

test('a tree deeper than a path is long, and one with nothing in it', async () => {
  const deep = treeOf('deep', 0, () => {});
  execFileSync('python3', [
    '-c',
    'import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(1500): os.mkdir("d"); os.chown("d", 100000, 100000); os.chdir("d")',
    join(dir, 'deep'),
  ]);
  expect((await pack(deep)).taken.files).toBe(1_501);
  execFileSync('rm', ['-r', join(dir, 'deep')]);
  const empty = await pack(treeOf('empty', 0, () => {}));
  expect([empty.taken.files, empty.data]).toEqual([1, null]);
});

test('a store that cannot be written is said to be away', async () => {
  const order = treeOf('away', 0, (root) => writeFileSync(join(root, 'f'), 'x'));
  const error = await refusal(pack({ ...order, data: '/proc/self/mounts/x' }));
  expect(error.code).toBe('INTERNAL'); // not there at all, and not away
  execFileSync('sh', ['-euc', 'mkdir "$0"; mount -t tmpfs -o ro none "$0"', join(dir, 'ro')]);
  try {
    expect(await refusal(pack({ ...order, data: join(dir, 'ro/data') }))).toMatchObject({ code: 'LAYER_STORE_UNAVAILABLE', details: { errno: 'EROFS' } });
  } finally {
    execFileSync('umount', [join(dir, 'ro')]);
  }
});

test('a full disk is NO_SPACE', async () => {
  const order = treeOf('full', 0, (root) => writeFileSync(join(root, 'large'), Buffer.from(Array.from({ length: 4_000_000 }, (_, i) => (i * i) % 251))));
  utimesSync(join(dir, 'full'), 1, 1);
  const error = await refusal(pack({ ...order, data: '/dev/full' }));
  expect(error.code).toBe('NO_SPACE');
});

describe('large files that are to be shared with the upper', () => {
  const SIZES = { small: 70_000, aligned: 524_288, odd: 524_289, block: 266_240, large: 40_000_001 };
  const fill = (root: string): void => {
    for (const [name, size] of Object.entries(SIZES)) writeFileSync(join(root, name), randomBytes(size));
    execFileSync('sh', ['-euc', 'cd "$0"; ln large again; truncate -s 900k holes; head -c 300000 large | dd of=holes bs=100k seek=3 conv=notrunc', root], {
      stdio: 'pipe',
    });
  };
  /** Files of the image, as a mount shows them, beside those of the upper. */
  const differences = (order: PackOrder): string => {
    const script = 'mount -t tmpfs none /mnt; mkdir /mnt/m; mount -t erofs -o "device=$2" "$1" /mnt/m; diff -r "$0" /mnt/m; stat -c %h /mnt/m/again';
    const { directory } = order.upper as { directory: string };
    const as = (loop: string): string => execFileSync('losetup', ['--find', '--show', '--read-only', loop], { encoding: 'utf8' }).trim();
    const devices = [as(order.image), as(order.data)] as const;
    try {
      return execFileSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-uc', script, directory, ...devices], { encoding: 'utf8' });
    } finally {
      for (const device of devices) execFileSync('losetup', ['--detach', device]);
    }
  };

  test('take no room and hold what they held, where the file system shares blocks', async () => {
    execFileSync('sh', ['-euc', 'truncate -s 400M "$0.img"; mkfs.xfs -q "$0.img"; mkdir "$0"; mount -o loop "$0.img" "$0"', join(dir, 'xfs')]);
    try {
      const order = treeOf('xfs/upper', 0, fill);
      const free = (): number => statfsSync(join(dir, 'xfs')).bfree * 4_096;
      execFileSync('sync', ['-f', join(dir, 'xfs')]);
      const before = free();
      const { taken } = await pack({ ...order, share: true });
      expect(taken.clonedBytes).toBeGreaterThan(SIZES.large + SIZES.aligned);
      execFileSync('sync', ['-f', join(dir, 'xfs')]);
      expect(before - free()).toBeLessThan(2_000_000);
      expect(differences(order)).toBe('2\n');
      writeFileSync(join(dir, 'xfs/upper/large'), 'it goes on');
      expect(differences(order)).toMatch(/^(Files|diff|Binary).*large/m);
    } finally {
      execFileSync('umount', ['-l', join(dir, 'xfs')]);
    }
  });

  test('are read where it does not: the same image', async () => {
    const order = treeOf('upper', 0, fill);
    const read = await pack(order);
    const asked = await pack({ ...order, image: join(dir, 'asked.erofs'), data: join(dir, 'asked.data'), share: true });
    expect([asked.taken.clonedBytes, asked.image]).toEqual([0, read.image]);
    expect(differences(order)).toBe('2\n');
  });
});
