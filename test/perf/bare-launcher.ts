/** The reference for `create`: the launcher alone, without log, bus or Edge. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LayerDigest } from '#bus/ids.ts';
import type { LauncherClient } from '#runtime/launcher/client.ts';
import { ensureLauncher } from '#runtime/launcher/process.ts';
import { runDirNamed } from '#runtime/run-directory.ts';
import { projectRoot } from '#runtime/project-root.ts';

export type BareLauncher = { launch(): Promise<{ readonly ms: number; destroy(): Promise<void> }>; close(): Promise<void> };

export const openBareLauncher = async (dir: string, digest: LayerDigest, image: string): Promise<BareLauncher> => {
  const runDir = runDirNamed(`dsec-bare-${process.pid}`);
  const sandboxesDir = join(dir, 'bare-boxes');
  mkdirSync(sandboxesDir);
  mkdirSync(join(runDir, 's'), { recursive: true });
  const client: LauncherClient = await ensureLauncher({
    runDir,
    cgroupName: `dsec-bare-${process.pid}`,
    trashDir: join(dir, 'bare-trash'),
    sandboxesDir,
    epoch: 1,
    binDir: join(projectRoot(), 'build/native'),
  });
  await client.mountImage(digest, image);
  let next = 0;
  return {
    launch: async () => {
      const n = next++;
      const box = join(sandboxesDir, String(n));
      mkdirSync(join(box, 'exec'), { recursive: true, mode: 0o711 });
      const id = `sb-0-${n.toString(16).padStart(20, '0')}-bare`;
      const paths = { upper: join(box, 'upper'), work: join(box, 'work'), socket: join(runDir, 's', `${n}.sock`) };
      const startedAt = performance.now();
      await client.launch({
        id,
        hostname: 'bare',
        slot: n % 1_000,
        layers: [digest],
        execDir: join(box, 'exec'),
        memoryMiB: 256,
        cpuMillis: 1_000,
        pids: 128,
        lifeSeconds: 600,
        ...paths,
      });
      const ms = performance.now() - startedAt;
      return { ms, destroy: () => client.destroy({ id, ...paths }) };
    },
    close: async () => {
      await client.quit();
      client.close();
      rmSync(runDir, { recursive: true, force: true });
    },
  };
};
