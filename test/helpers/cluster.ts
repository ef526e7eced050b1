/** A whole cluster for a test or a benchmark, in directories of its own, with the layer `small`; leaves nothing. */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { type Cluster, type ClusterOptions, removeCluster, startCluster } from '#infra/cluster/cluster.ts';
import { loadConfig } from '#runtime/config.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { createLog, type LogLevel } from '#runtime/log/log.ts';
import { withLayerStore } from '#runtime/roles/layer-store.ts';
import { makeBusyboxRoot } from './platform.ts';

export type TestCluster = {
  readonly cluster: Cluster;
  readonly dir: string;
  /** Ends every process of it, lets time pass, and starts it on the same directories; sandboxes go on meanwhile. */
  restart(meanwhile?: () => Promise<unknown>): Promise<void>;
  close(): Promise<void>;
};

export type TestClusterOptions = Partial<Omit<ClusterOptions, 'dir' | 'log'>> & { readonly logLevel?: LogLevel };

/** Short leases, so that a loss takes seconds; roles that are killed on purpose come back soon. */
export const startTestCluster = async (options: TestClusterOptions = {}): Promise<TestCluster> => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-c-'));
  const { logLevel = 'info', overrides = {}, edges = 2, ...rest } = options;
  const root = join(dir, 'root');
  mkdirSync(join(dir, 'layers'), { recursive: true });
  makeBusyboxRoot(root);
  await buildLayer(new PosixLayerStore({ dir: join(dir, 'layers') }), { name: 'small', kind: 'base', source: { type: 'directory', path: root } });
  const start = () =>
    startCluster({
      dir,
      edges,
      restartMaxMs: 500,
      log: createLog('cluster', 'error'),
      ...rest,
      overrides: { logLevel, ...overrides },
    });
  let cluster = await start();
  return {
    get cluster() {
      return cluster;
    },
    dir,
    restart: async (meanwhile = async () => undefined) => {
      await cluster.closeKeepingSandboxes();
      await meanwhile();
      cluster = await start();
    },
    close: async () => {
      await cluster.close();
      removeCluster(dir);
    },
  };
};

/** Where layers lie in the bus' object store, `small` has to be put there by whoever may. */
export const putSmallLayer = ({ cluster, dir }: TestCluster): Promise<unknown> =>
  withLayerStore(loadConfig({ file: cluster.operatorConfig }), (store) =>
    buildLayer(store, { name: 'small', kind: 'base', source: { type: 'directory', path: join(dir, 'root') } }),
  );
