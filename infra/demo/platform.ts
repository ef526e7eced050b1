/** A platform for one run of a demonstration: its layers, directories of its own, and the way to end it. */
import { basename, join } from 'node:path';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { cgroupNameOf, type Config, type ConfigInput, loadConfig, pathsOf } from '#runtime/config.ts';
import { createLog } from '#runtime/log/log.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { runDirNamed } from '#runtime/run-directory.ts';
import { type Platform, startPlatform } from '#runtime/roles/up/platform.ts';

export type DemoPlatform<Images> = {
  readonly platform: Platform;
  readonly config: Config;
  readonly images: Images;
  readonly logFile: string;
  readonly cgroupName: string;
  readonly dirs: readonly string[];
  close(): Promise<void>;
};

export type DemoPlatformOptions<Images> = {
  readonly dir: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  /** Makes sure of the layers before anything is started; they are kept for the next run. */
  readonly images: (store: PosixLayerStore, say: (line: string) => void, signal: AbortSignal) => Promise<Images>;
  readonly overrides?: Partial<ConfigInput>;
};

export const startDemoPlatform = async <Images>({ dir, say, signal, images, overrides }: DemoPlatformOptions<Images>): Promise<DemoPlatform<Images>> => {
  const runDir = runDirNamed(basename(dir));
  const config = loadConfig({
    flags: {
      dataDir: join(dir, 'data'),
      runDir,
      layersDir: join(projectRoot(), '.cache/demo/layers'),
      edgeName: 'demo' as ConfigInput['edgeName'],
      ...overrides,
    },
  });
  const made = await images(new PosixLayerStore({ dir: pathsOf(config).layers }), say, signal);
  const logFile = join(dir, 'roles.log');
  const platform = await startPlatform({ config, log: createLog('up', 'silent'), logFile, onProgress: say });
  return { platform, config, images: made, logFile, cgroupName: cgroupNameOf(config), dirs: [dir, runDir], close: () => platform.close() };
};
