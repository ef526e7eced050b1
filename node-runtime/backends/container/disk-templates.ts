/**
 * Empty file systems, one per size, that the launcher copies for each sandbox with a disk limit: so that making a disk costs
 * a copy of a few blocks and no process. Sparse files of some hundred KiB; made when a size is first asked for, the least
 * recently used go first. All of them may be deleted at any time.
 */
import { mkdirSync } from 'node:fs';
import { readdir, rename, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MiB } from '#bus/units.ts';
import { runTool } from '../../images/tools/run-tool.ts';
import { CONTAINER_LIMITS } from './limits.ts';

/**
 * Part of every name: changed together with what mkfs is told. No journal, because no sandbox outlives a power cut; nothing kept for
 * root; twice the usual inodes, because agents write many small files; tables stay holes until they are used. `verity` for what it keeps the
 * kernel from: large folios, with which a big write finds no space up to a MiB before the end, where a small one still does.
 */
const FORMAT = 'v2';
const MKFS = [
  'mkfs.ext4',
  '-q',
  '-F',
  '-O',
  '^has_journal,^resize_inode,verity',
  '-m',
  '0',
  '-b',
  '4096',
  '-i',
  '8192',
  '-I',
  '256',
  '-E',
  'lazy_itable_init=1,nodiscard',
] as const;

export class DiskTemplates {
  readonly #dir: string;
  readonly #making = new Map<MiB, Promise<string>>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Path of an empty file system of that size. NO_SPACE, HOST_UNFIT. */
  async pathFor(size: MiB): Promise<string> {
    const making = this.#making.get(size) ?? this.#ensure(size).finally(() => this.#making.delete(size));
    this.#making.set(size, making);
    return making;
  }

  async #ensure(size: MiB): Promise<string> {
    const path = join(this.#dir, `${FORMAT}-${size}.ext4`);
    const now = new Date();
    const isThere = await utimes(path, now, now).then(
      () => true,
      () => false,
    );
    if (!isThere) await this.#make(path, size);
    return path;
  }

  async #make(path: string, size: MiB): Promise<void> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const aside = `${path}.new`;
    await writeFile(aside, '', { mode: 0o600 });
    await truncate(aside, size * 1024 * 1024);
    await runTool({ command: [...MKFS, aside], doing: `make an empty file system of ${size} MiB` });
    await rename(aside, path);
    await this.#forgetOldest();
  }

  /** A copy in progress has the file open, and does not mind. */
  async #forgetOldest(): Promise<void> {
    const names = await readdir(this.#dir);
    if (names.length <= CONTAINER_LIMITS.diskTemplates) return;
    const dated = await Promise.all(names.map(async (name) => ({ name, usedMs: (await stat(join(this.#dir, name))).mtimeMs })));
    dated.sort((a, b) => b.usedMs - a.usedMs);
    for (const { name } of dated.slice(CONTAINER_LIMITS.diskTemplates)) await rm(join(this.#dir, name), { force: true });
  }
}
