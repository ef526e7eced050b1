/** The project's quota, changed again and again while there is load, and its books compared afterwards with what the platform says of them. */
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { decodeCommit } from '#bus/envelope.ts';
import { toWireError } from '#bus/errors.ts';
import type { QuotaAmounts } from '#bus/project/quota.ts';
import type { ProjectState } from '#bus/project/schema.ts';
import { eventsStream, parseCommitSubject, projectAddress } from '#bus/subjects.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import type { Cluster } from '#infra/cluster/cluster.ts';
import { shardsOf } from '#runtime/config.ts';
import { createLog } from '#runtime/log/log.ts';
import { Projects } from '#runtime/roles/iam/projects.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { asOperator } from './operator.ts';
import { type Entry, keepBooks, type QuotaBooks } from './quota-audit.ts';

/** From less than the load holds at a time, when it is refused, to more. */
const SANDBOXES = [12, 120] as const;
const MEMORY_MIB = [600, 6_000] as const;
const EVERY_MS = 4_000;
/** How long the books may take to follow the last stop, and a create to find the last unit free. */
const SETTLE_MS = 60_000;
/** Any of the iam processes may answer: enough questions to hear each of them. */
const QUESTIONS = 6;
const NO_ROOM: ReadonlySet<string> = new Set(['QUOTA_EXCEEDED', 'DEADLINE_EXCEEDED']);

export type QuotaVerdict = { readonly drift: number; readonly findings: readonly string[]; readonly leases: number };

const projectOf = (cluster: Cluster) => cluster.configOf(cluster.edges[0] ?? '').project;

export const setQuota = async (cluster: Cluster, nc: NatsConnection, limits: QuotaAmounts): Promise<void> => {
  const { eventLog } = connectJetStream(nc, { readFrom: 'leader' });
  const projects = new Projects({ eventLog, clock: systemClock, log: createLog('chaos', 'silent') });
  try {
    await projects.decide(projectOf(cluster), { type: 'SetQuota', limits });
  } finally {
    projects.close();
  }
};

/** Again while the bus elects. */
const withPatience = async (work: () => Promise<void>): Promise<void> => {
  for (const until = performance.now() + SETTLE_MS; ; await delay(500)) {
    try {
      return await work();
    } catch (thrown) {
      if (performance.now() > until) throw thrown;
    }
  }
};

/** Resolves with the number of changes that were made. */
export const changeQuotas = (cluster: Cluster, until: () => boolean): Promise<number> =>
  asOperator(cluster, async (nc) => {
    let changes = 0;
    for (; !until(); await delay(EVERY_MS)) {
      const limits = { sandboxes: randomInt(...SANDBOXES), ...(randomInt(2) === 0 ? { memoryMiB: randomInt(...MEMORY_MIB) } : {}) };
      const made = await setQuota(cluster, nc, limits).then(
        () => true,
        () => false, // the bus elects; the next change comes soon
      );
      if (made) changes += 1;
    }
    await withPatience(() => setQuota(cluster, nc, {})); // what is done after the load is not to be refused
    return changes;
  });

/** Every commit that has been stored, with the server's time. */
const readLog = async (cluster: Cluster, nc: NatsConnection): Promise<Entry[]> => {
  const entries: Entry[] = [];
  const { eventLog } = connectJetStream(nc, { readFrom: 'leader' });
  for (const shard of shardsOf(cluster.configOf(cluster.edges[0] ?? ''))) {
    const { lastSequence } = await eventLog.bounds(shard);
    if (lastSequence === 0) continue;
    const consumer = await jetstream(nc).consumers.get(eventsStream(shard));
    const messages = await consumer.consume();
    for await (const message of messages) {
      const address = parseCommitSubject(message.subject);
      if (address && message.data.length > 0) {
        const { events } = decodeCommit(message.data);
        entries.push({ ...address, storedAt: Number(message.timestampNanos) / 1e6, sequence: message.seq, events });
      }
      if (message.seq >= lastSequence) break;
    }
  }
  return entries;
};

/** Waits until `look` finds nothing, or until it should have; says what it finds then. */
const settled = async (look: () => Promise<string[]>): Promise<string[]> => {
  for (const until = performance.now() + SETTLE_MS; ; await delay(500)) {
    const found = await look();
    if (found.length === 0 || performance.now() > until) return found;
  }
};

/** Where the books and the platform differ: the actor's own state, and the use that each iam process tells of. */
const differences = async (cluster: Cluster, nc: NatsConnection, dsec: DsecClient, books: QuotaBooks): Promise<string[]> => {
  const project = projectOf(cluster);
  const { eventLog } = connectJetStream(nc, { readFrom: 'leader' });
  const state = (await eventLog.last(projectAddress(project)))?.commit.state as unknown as ProjectState;
  const found: string[] = [];
  const compare = (what: string, here: unknown, there: unknown): void => {
    if (JSON.stringify(here) !== JSON.stringify(there)) found.push(`${what}: the books say ${JSON.stringify(here)}, the platform ${JSON.stringify(there)}`);
  };
  compare('limits', sorted(books.limits(project)), sorted(state.limits));
  compare('leases', [...books.leases(project)].sort(), state.leases.map(({ id }) => id).sort());
  const { sandboxes = 0, memoryMiB = 0 } = books.used(project);
  for (let question = 0; question < QUESTIONS; question += 1) {
    const { used } = await dsec.admin.getProject();
    compare('use', { sandboxes, memoryMiB }, { sandboxes: used.sandboxes ?? 0, memoryMiB: used.memoryMiB ?? 0 });
  }
  return [...new Set(found)];
};
const sorted = (amounts: Readonly<Record<string, number>>) => Object.entries(amounts).sort();

/** Between load and end: sandboxes live, nothing changes. */
export const auditQuota = (cluster: Cluster, dsec: DsecClient): Promise<QuotaVerdict> =>
  asOperator(cluster, async (nc) => {
    let books = keepBooks([]);
    const differing = await settled(async () => {
      books = keepBooks(await readLog(cluster, nc));
      return differences(cluster, nc, dsec, books);
    });
    const drift = books.findings.reduce((sum, { amount }) => sum + amount, differing.length);
    return { drift, findings: [...books.findings.map(({ kind, what }) => `${kind}: ${what}`), ...differing], leases: books.lent };
  });

/** When every sandbox has ended: nothing is in use, nothing is lent, and a quota of one has room for one. */
export const auditQuotaAtTheEnd = (cluster: Cluster, dsec: DsecClient): Promise<QuotaVerdict> =>
  asOperator(cluster, async (nc) => {
    const left = await settled(async () => {
      const books = keepBooks(await readLog(cluster, nc));
      const { sandboxes = 0 } = books.used(projectOf(cluster));
      const differing = await differences(cluster, nc, dsec, books);
      return sandboxes === 0 ? differing : [...differing, `${sandboxes} sandboxes count as in use when all have ended`];
    });
    await withPatience(() => setQuota(cluster, nc, { sandboxes: 1 }));
    try {
      const one = await dsec.runContainer({ image: 'small', memoryLimitMb: 16 }, { timeoutMs: SETTLE_MS });
      await one.stop();
    } catch (thrown) {
      if (!NO_ROOM.has(toWireError(thrown).code)) throw thrown;
      left.push(`a quota of one has no room for one when all have ended: ${toWireError(thrown).message}`);
    }
    const after = await auditQuota(cluster, dsec);
    return { ...after, drift: after.drift + left.length, findings: [...left, ...after.findings] };
  });
