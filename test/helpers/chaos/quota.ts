/** The project's quota, changed again and again while there is load, and asked at the end whether it has all of it back. */
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import type { QuotaAmounts } from '#bus/project/quota.ts';
import { toWireError } from '#bus/errors.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { UsageFold } from '#actors/project/usage.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import type { Cluster } from '#infra/cluster/cluster.ts';
import { shardsOf } from '#runtime/config.ts';
import { createLog } from '#runtime/log/log.ts';
import { Projects } from '#runtime/roles/iam/projects.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { asOperator } from './operator.ts';

/** Always more than the load holds at a time: whoever is refused is refused for what is not in use. */
const SANDBOXES = [120, 240] as const;
const EVERY_MS = 4_000;
/** Leases lent to placements that were killed come back 40 s after they were lent; a create waits for that. */
const SETTLE_MS = 120_000;
const NO_ROOM: ReadonlySet<string> = new Set(['QUOTA_EXCEEDED', 'DEADLINE_EXCEEDED']);

const projectOf = (cluster: Cluster) => cluster.configOf(cluster.edges[0] ?? '').project;

const setQuota = async (cluster: Cluster, nc: NatsConnection, limits: QuotaAmounts): Promise<void> => {
  const { eventLog } = connectJetStream(nc, { readFrom: 'leader' });
  const projects = new Projects({ eventLog, clock: systemClock, log: createLog('chaos', 'silent') });
  try {
    await projects.decide(projectOf(cluster), { type: 'SetQuota', limits });
  } finally {
    projects.close();
  }
};

/** Resolves with the number of changes that were made. */
export const changeQuotas = (cluster: Cluster, until: () => boolean): Promise<number> =>
  asOperator(cluster, async (nc) => {
    let changes = 0;
    for (; !until(); await delay(EVERY_MS)) {
      const made = await setQuota(cluster, nc, { sandboxes: randomInt(...SANDBOXES) }).then(
        () => true,
        () => false, // the bus elects; the next change comes soon
      );
      if (made) changes += 1;
    }
    return changes;
  });

/**
 * What is still counted as used when every sandbox has ended: by the log, and by the iam that runs now, which must have room for
 * one sandbox under a quota of one.
 */
export const quotaDriftOf = (cluster: Cluster, dsec: DsecClient): Promise<number> =>
  asOperator(cluster, async (nc) => {
    const { eventLog } = connectJetStream(nc, { readFrom: 'leader' });
    const fold = new UsageFold();
    for (const shard of shardsOf(cluster.configOf(cluster.edges[0] ?? '')))
      for (const kind of ['request', 'sandbox', 'edge'] as const) for (const stored of await eventLog.lastOfEach({ shard, kind })) fold.take(stored);
    const byLog = fold.usageOf([projectOf(cluster)], []).other.sandboxes ?? 0;
    await setQuota(cluster, nc, { sandboxes: 1 });
    try {
      const one = await dsec.runContainer({ image: 'small', memoryLimitMb: 16 }, { timeoutMs: SETTLE_MS });
      await one.stop();
      return byLog;
    } catch (thrown) {
      if (!NO_ROOM.has(toWireError(thrown).code)) throw thrown;
      return byLog + 1;
    }
  });
