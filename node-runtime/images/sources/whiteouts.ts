/**
 * The deletion marks of an OCI layer, turned into overlay's own: `.wh.name` into a character device 0:0 called `name`,
 * `.wh..wh..opq` into the attribute that makes its directory hide everything below. Node has neither mknod nor setxattr.
 */
import { lstat, readdir, rm } from 'node:fs/promises';
import koffi from 'koffi';
import { DsecError } from '#bus/errors.ts';
import { printable } from '../tools/tree.ts';

const libc = koffi.load('libc.so.6');
const mknod = libc.func('int mknod(const uint8_t *path, uint32_t mode, uint64_t device)') as (path: Buffer, mode: number, device: number) => number;
const lsetxattr = libc.func('int lsetxattr(const uint8_t *path, const char *name, const uint8_t *value, size_t size, int flags)') as (
  path: Buffer,
  name: string,
  value: Buffer,
  size: number,
  flags: number,
) => number;

const S_IFCHR = 0o020000;
const MARK = Buffer.from('.wh.');
const OPAQUE = Buffer.from('.wh..wh..opq');
const RESERVED = Buffer.from('.wh..wh.');
const SLASH = Buffer.from('/');
const NUL = Buffer.from([0]);

export const convertOciWhiteouts = async (root: string, what: string): Promise<void> => {
  const pending = [Buffer.from(root)];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    const names = await readdir(directory, { encoding: 'buffer' });
    for (const name of names) {
      const path = Buffer.concat([directory, SLASH, name]);
      if (name.subarray(0, MARK.byteLength).equals(MARK)) await convert(directory, name, path, what);
      else if ((await lstat(path)).isDirectory()) pending.push(path);
    }
  }
};

const convert = async (directory: Buffer, name: Buffer, path: Buffer, what: string): Promise<void> => {
  await rm(path, { recursive: true });
  if (name.equals(OPAQUE)) {
    const value = Buffer.from('y');
    check(lsetxattr(Buffer.concat([directory, NUL]), 'trusted.overlay.opaque', value, value.byteLength, 0), what, path);
    return;
  }
  if (name.subarray(0, RESERVED.byteLength).equals(RESERVED)) return; // bookkeeping of older builders, without meaning in a layer
  const hidden = Buffer.concat([directory, SLASH, name.subarray(MARK.byteLength)]);
  // A deletion speaks of the layers below; what the same layer brings anew stays.
  if (await lstat(hidden).catch(() => null)) return;
  check(mknod(Buffer.concat([hidden, NUL]), S_IFCHR, 0), what, path);
};

const check = (result: number, what: string, path: Buffer): void => {
  if (result === 0) return;
  throw DsecError.of('INVALID_ARGUMENT', `${what}: the deletion ${printable(path)} could not be converted (errno ${koffi.errno()})`);
};
