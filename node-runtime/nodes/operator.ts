/** The bus with the operator's key, for commands that look at or change the cluster itself. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import { connectJetStream, type JetStreamBus } from '#adapters/jetstream/mod.ts';
import { connectBus } from '../bus/connect.ts';
import { type Config, pathsOf } from '../config.ts';
import { createLog } from '../log/log.ts';
import { NODES_LIMITS } from './limits.ts';

export type Operator = { readonly connection: NatsConnection; readonly jetStream: JetStreamBus };

/** Runs `work` connected; says which file is missing where the platform or its keys are not here. */
export const asOperator = async <T>(config: Config, work: (operator: Operator) => Promise<T>): Promise<T> => {
  const paths = pathsOf(config);
  const servers = config.servers?.split(',').map((server) => server.trim()) ?? serversFrom(paths.context);
  if (!servers)
    throw DsecError.of(
      'INVALID_ARGUMENT',
      `nothing names the bus: neither servers in the configuration nor ${paths.context}; set DSEC_CONFIG or DSEC_DATA_DIR`,
    );
  const keyFile = join(paths.credentials, 'role-operator.nk');
  if (!existsSync(keyFile)) throw DsecError.of('FORBIDDEN', `the operator's key ${keyFile} is not here; run this where the bus's keys are, as their owner`);
  const credentials = { nkeySeed: readFileSync(keyFile, 'utf8').trim() };
  const connection = await connectBus({ servers, credentials }, 'dsec-operator', createLog('operator', 'error'), NODES_LIMITS.connectMs);
  const jetStream = connectJetStream(connection, { readFrom: 'leader' });
  try {
    return await work({ connection, jetStream });
  } finally {
    jetStream.close();
    await connection.close();
  }
};

const serversFrom = (file: string): string[] | undefined =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { servers: string[] }).servers : undefined;
