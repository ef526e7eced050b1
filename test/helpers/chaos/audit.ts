/**
 * Compares what a client was told with what the cluster holds: its log, its kernels, its books. Run when the killing is over.
 *
 * lost: acknowledged, and not so. doubled: done twice. orphaned: lives, and nobody was told of it; or the kernel has it, and the
 * log does not. quotaDrift: where the quota's books, kept a second time from the log, differ from what the platform says, overspending
 * included; and what nodes count as used when everything has ended.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Beat } from '#bus/edge/schema.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { BEAT_FILTER } from '#bus/subjects.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import type { Cluster } from '#infra/cluster/cluster.ts';
import { cgroupNameOf, shardsOf } from '#runtime/config.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { checkLines, type Load } from './load.ts';
import { asOperator } from './operator.ts';
import { auditQuota, auditQuotaAtTheEnd } from './quota.ts';

export type Verdict = {
  readonly acked: number;
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  readonly orphaned: readonly string[];
  readonly quotaDrift: number;
  readonly quotaFindings: readonly string[];
  /** Leases that the audit has looked at. */
  readonly leases: number;
};

/** How long kernels and books may take to follow the last stop. */
const SETTLE_MS = 30_000;

export const audit = async (cluster: Cluster, dsec: DsecClient, load: Load): Promise<Verdict> => {
  const living = load.kept.filter(({ stopped }) => !stopped);
  for (const kept of living) await checkLines(load, kept);
  const before = await statesOf(cluster);
  const lost = [...load.lost];
  for (const { sandbox, stopped } of load.kept) {
    const state = before.get(sandbox.id);
    if (!state) lost.push(`${sandbox.id}: acknowledged, not in the log`);
    else if (stopped && !ENDED_STATUSES.has(state.status)) lost.push(`${sandbox.id}: stop acknowledged, ${state.status}`);
    else if (!stopped && ENDED_STATUSES.has(state.status))
      lost.push(`${sandbox.id}: never stopped, ${state.status} ${state.failure?.code ?? state.stopReason}`);
  }
  const known = new Set<string>(load.kept.map(({ sandbox }) => sandbox.id));
  const strangers = [...before.values()].filter(({ id, status }) => !known.has(id) && !ENDED_STATUSES.has(status));
  const whileLiving = await auditQuota(cluster, dsec);
  await Promise.all(living.map(({ sandbox }) => sandbox.stop({ timeoutMs: SETTLE_MS }).catch(() => undefined)));
  const settled = await settle(cluster);
  const inTheEnd = await auditQuotaAtTheEnd(cluster, dsec);
  // Overspending is found both times.
  const quotaFindings = [...new Set([...whileLiving.findings, ...inTheEnd.findings])];
  return {
    acked: load.acked,
    lost,
    doubled: [...load.doubled, ...twins(before)],
    orphaned: [...strangers.map(({ id, status }) => `${id}: ${status}, nobody was told`), ...settled.inKernel],
    quotaDrift: settled.used + Math.max(whileLiving.drift, inTheEnd.drift),
    quotaFindings,
    leases: inTheEnd.leases,
  };
};

/** Two sandboxes that were admitted for one item of one request, and neither of them failed on the way. */
const twins = (states: ReadonlyMap<string, SandboxState>): string[] => {
  const byItem = new Map<string, string[]>();
  for (const { id, requestId, index, failure } of states.values()) {
    if (failure) continue;
    const item = `${requestId}:${index}`;
    byItem.set(item, [...(byItem.get(item) ?? []), id]);
  }
  return [...byItem.values()].filter((ids) => ids.length > 1).map((ids) => ids.join(' and '));
};

/** Newest state of every sandbox of the cluster. */
export const statesOf = (cluster: Cluster): Promise<Map<string, SandboxState>> =>
  asOperator(cluster, async (nc) => {
    const { eventLog } = connectJetStream(nc, { readFrom: 'leader' });
    const shards = shardsOf(cluster.configOf(cluster.edges[0] ?? ''));
    const found = (await Promise.all(shards.map((shard) => eventLog.lastOfEach({ shard, kind: 'sandbox' })))).flat();
    return new Map(found.map(({ commit }) => [commit.actorId, commit.state as unknown as SandboxState]));
  });

/** Waits until nothing is left, or until it should have been; says what is. */
const settle = async (cluster: Cluster): Promise<{ readonly inKernel: string[]; readonly used: number }> => {
  for (const until = performance.now() + SETTLE_MS; ; await delay(500)) {
    const inKernel = cluster.edges.flatMap((edge) => groupsOf(cgroupNameOf(cluster.configOf(edge))).map((id) => `${id}: on ${edge} after its end`));
    const used = await usedOf(cluster);
    if ((inKernel.length === 0 && used === 0) || performance.now() > until) return { inKernel, used };
  }
};

/** Control groups of sandboxes: what the kernel has. */
const groupsOf = (name: string): string[] => {
  for (const root of ['/sys/fs/cgroup/unified', '/sys/fs/cgroup/pids', '/sys/fs/cgroup']) {
    try {
      return readdirSync(join(root, name), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && entry.name.startsWith('sb-'))
        .map((entry) => entry.name);
    } catch {
      // not this layout
    }
  }
  return [];
};

/** What every Edge says it has promised, in sandboxes. */
const usedOf = (cluster: Cluster): Promise<number> =>
  asOperator(cluster, async (nc) => {
    const used = new Map<string, number>();
    const beats = nc.subscribe(BEAT_FILTER);
    const timer = setTimeout(() => beats.unsubscribe(), 3_000);
    for await (const message of beats) {
      const beat = Beat.safeParse(message.json());
      if (beat.success) used.set(beat.data.edge, beat.data.used.sandboxes);
      if (used.size === cluster.edges.length) beats.unsubscribe();
    }
    clearTimeout(timer);
    return [...used.values()].reduce((n, one) => n + one, cluster.edges.length - used.size);
  });
