/**
 * Under which name a placement borrows quota: `<place>.<life>`. The place stays the same over the lives of the processes that run in
 * one directory, and its lock says for certain that the life before is over. So a new life may have settled at once what the old
 * one had borrowed, and nobody waits for the ends of its leases.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, ftruncateSync, mkdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parseQuotaHolder, type QuotaHolderName, quotaHolderName } from '#bus/iam/quota-lending.ts';
import { lockFile } from '../../file-lock.ts';

export type HolderName = { readonly name: QuotaHolderName; readonly hadLives: boolean; release(): void };

/** Where another process lives in the directory, or nothing is known of the life before, it is a place of its own. */
export const takeHolderName = (runDir: string): HolderName => {
  mkdirSync(runDir, { recursive: true, mode: 0o711 });
  const file = join(runDir, 'placement.holder');
  const fd = lockFile(file);
  const before = fd === null ? null : parseQuotaHolder(readFileSync(file, 'utf8').trim());
  const name = quotaHolderName(before?.place ?? `placement-${randomBytes(6).toString('hex')}`, (before?.life ?? 0) + 1);
  if (fd !== null) {
    ftruncateSync(fd);
    writeSync(fd, `${name}\n`);
  }
  return { name, hadLives: before !== null, release: () => fd !== null && closeSync(fd) };
};
