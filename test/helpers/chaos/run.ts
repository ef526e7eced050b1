/** One run of chaos on a cluster: load and kills together for a while, then calm, then the audit. */
import type { TestCluster } from '#test/helpers/cluster.ts';
import { connect } from '#sdk/mod.ts';
import { audit, type Verdict } from './audit.ts';
import { type Kill, runKiller } from './killer.ts';
import { type Load, newLoad, runLoad } from './load.ts';
import { changeQuotas } from './quota.ts';

export type ChaosOptions = {
  readonly host: TestCluster;
  readonly seconds: number;
  readonly workers: number;
  readonly everyMs: readonly [number, number];
  readonly say?: (line: string) => void;
};
export type ChaosReport = Verdict & { readonly kills: readonly Kill[]; readonly quotaChanges: number; readonly refused: Load['refused'] };

export const runChaos = async ({ host, seconds, workers, everyMs, say = () => {} }: ChaosOptions): Promise<ChaosReport> => {
  const { cluster } = host;
  const dsec = await connect({ contextFile: cluster.contextFile });
  const load = newLoad();
  const endsAt = performance.now() + seconds * 1_000;
  const until = (): boolean => performance.now() > endsAt;
  const progress = setInterval(() => say(`${load.acked} acknowledged, ${load.kept.length} sandboxes, refused ${JSON.stringify([...load.refused])}`), 10_000);
  try {
    const onKill = (name: string): void => say(`killed ${name}`);
    const [kills, quotaChanges] = await Promise.all([
      runKiller({ cluster, everyMs, until, onKill }),
      changeQuotas(cluster, until),
      runLoad({ dsec, load, tag: `c${Date.now().toString(36)}`, workers, until }),
    ]);
    say('calm; looking at what is left');
    return { ...(await audit(cluster, dsec, load)), kills, quotaChanges, refused: load.refused };
  } finally {
    clearInterval(progress);
    await dsec.close();
  }
};
