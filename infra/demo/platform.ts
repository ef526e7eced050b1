/** A platform for one run of a demonstration of training: its layers, directories of its own, and the way to end it. */
import { join } from 'node:path';
import { basename } from 'node:path';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { cgroupNameOf, type Config, type ConfigInput, loadConfig, pathsOf } from '#runtime/config.ts';
import { createLog } from '#runtime/log/log.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { runDirNamed } from '#runtime/run-directory.ts';
import { type Platform, startPlatform } from '#runtime/roles/up/platform.ts';
import { ensureImages } from './images.ts';
import type { DemoProject } from './project.ts';
import { ensureWorkerLayer } from './training/images.ts';
import type { TrainingImages } from './training/tasks.ts';

export type DemoPlatform = {
  readonly platform: Platform;
  readonly config: Config;
  readonly images: TrainingImages;
  readonly logFile: string;
  readonly cgroupName: string;
  readonly dirs: readonly string[];
  close(): Promise<void>;
};

export type DemoPlatformOptions = {
  readonly dir: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  readonly project: DemoProject;
  readonly overrides?: Partial<ConfigInput>;
};

export const startDemoPlatform = async ({ dir, say, signal, project, overrides }: DemoPlatformOptions): Promise<DemoPlatform> => {
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
  const store = new PosixLayerStore({ dir: pathsOf(config).layers });
  const { base, workspace } = await ensureImages(store, project, say, signal);
  const worker = await ensureWorkerLayer(store, say, signal);
  const logFile = join(dir, 'roles.log');
  const platform = await startPlatform({ config, log: createLog('up', 'silent'), logFile, onProgress: say });
  return {
    platform,
    config,
    images: { base, workspace, worker },
    logFile,
    cgroupName: cgroupNameOf(config),
    dirs: [dir, runDir],
    close: () => platform.close(),
  };
};
