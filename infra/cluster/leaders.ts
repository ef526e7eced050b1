/** Waits for the streams of a new cluster, and spreads their leaders: a server that leads them all does all the work. */
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import { CLUSTER_LIMITS } from './limits.ts';

/** Repeats until it succeeds: what a bus that elects its leaders refuses, it takes a moment later. */
export const whenFormed = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (const until = performance.now() + CLUSTER_LIMITS.formingMs; ; await delay(CLUSTER_LIMITS.formingPollMs)) {
    try {
      return await ask();
    } catch (thrown) {
      if (performance.now() > until)
        throw DsecError.of('BUS_UNAVAILABLE', `the bus did not form within ${CLUSTER_LIMITS.formingMs / 1_000} s: ${(thrown as Error).message}`, {
          cause: thrown,
        });
    }
  }
};

/** Leader of every stream, by stream. */
export const leadersOf = async (nc: NatsConnection): Promise<Map<string, string>> => {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: CLUSTER_LIMITS.formingRequestMs });
  const leaders = new Map<string, string>();
  for await (const { config, cluster } of jsm.streams.list()) if (cluster?.leader) leaders.set(config.name, cluster.leader);
  return leaders;
};

/** Gives each stream, in the order of names, the next server in turn. A stream that elects just now is left alone. */
export const spreadLeaders = async (nc: NatsConnection, servers: readonly string[]): Promise<void> => {
  const leaders = [...(await whenFormed(() => leadersOf(nc)))].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [index, [stream, leader]] of leaders.entries()) {
    const wanted = servers[index % servers.length];
    if (!wanted || wanted === leader) continue;
    const body = JSON.stringify({ placement: { preferred: wanted } });
    await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, body, { timeout: 5_000 }).catch(() => undefined); // the next round may succeed
  }
};
