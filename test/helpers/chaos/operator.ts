/** A cluster's bus with the operator's key. */
import { connect, type NatsConnection, nkeyAuthenticator } from '@nats-io/transport-node';
import { busConnectionOptions } from '#adapters/jetstream/mod.ts';
import type { Cluster } from '#infra/cluster/cluster.ts';

export const asOperator = async <T>(cluster: Cluster, work: (nc: NatsConnection) => Promise<T>): Promise<T> => {
  const authenticator = nkeyAuthenticator(new TextEncoder().encode(cluster.keys.roles.operator.nkeySeed));
  const nc = await connect({ ...busConnectionOptions([...cluster.urls], 'test'), authenticator });
  try {
    return await work(nc);
  } finally {
    await nc.close();
  }
};
