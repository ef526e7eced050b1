/** Removes what ended sandboxes left on disk: command logs after their retention, and the trash at once. */
import { existsSync } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
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
      for (const entry of await readdir(o.trashDir)) await rm(join(o.trashDir, entry), { recursive: true, force: true });
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
