/** Removes what ended sandboxes left on disk: command logs after their retention, and the trash at once. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Clock } from '#actors/ports/clock.ts';
import type { Log } from '../../log/log.ts';
import { EDGE_LIMITS } from './limits.ts';

export type SweepOptions = {
  readonly sandboxesDir: string;
  /** Directories put here are nobody's any more. */
  readonly trashDir: string;
  readonly isLive: (id: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
};

export const sweepLogs = (o: SweepOptions): { stop(): void } => {
  let running = false;
  const sweep = async () => {
    if (running) return;
    running = true;
    try {
      await expireLogs(o);
      await emptyTrash(o);
    } catch (thrown) {
      o.log.warn('sweep.failed', { message: (thrown as Error).message });
    } finally {
      running = false;
    }
  };
  const timer = setInterval(() => void sweep(), EDGE_LIMITS.sweepMs);
  const soon = setTimeout(() => void sweep(), 0);
  return {
    stop: () => {
      clearInterval(timer);
      clearTimeout(soon);
    },
  };
};

const expireLogs = async (o: SweepOptions): Promise<void> => {
  for (const id of await readdir(o.sandboxesDir)) {
    if (o.isLive(id)) continue;
    const dir = join(o.sandboxesDir, id);
    const exec = join(dir, 'exec');
    const { mtimeMs } = await stat(existsSync(exec) ? exec : dir);
    if (o.clock.now() - mtimeMs < EDGE_LIMITS.logRetentionMs) continue;
    await rename(dir, join(o.trashDir, `${id}.expired`));
  }
};

/**
 * By rm, and not here: what sandboxes leave has directories deeper than a path is long, and names that are no text; Node removes
 * neither, and one such tree would keep all others in the trash.
 */
const emptyTrash = async ({ trashDir, log }: SweepOptions): Promise<void> => {
  const entries = await readdir(trashDir);
  for (let at = 0; at < entries.length; at += EDGE_LIMITS.trashPerRm) {
    const args = ['-rf', '--one-file-system', '--', ...entries.slice(at, at + EDGE_LIMITS.trashPerRm)];
    // rm goes on after what it cannot remove, and so do we
    await promisify(execFile)('rm', args, { cwd: trashDir }).catch((thrown: Error) => log.warn('trash.kept', { message: thrown.message }));
  }
};
