/** A role's way to the bus: its key in the data directory, its own connection, and the streams made sure of. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type NatsConnection, nkeys } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import { DsecError } from '#bus/errors.ts';
import { connectJetStream, type JetStreamBus } from '#adapters/jetstream/mod.ts';
import type { BusCredentials } from '../bus/connect.ts';
import { connectBus } from '../bus/connect.ts';
import { whenBusAnswers } from '../bus/when-answers.ts';
import { type Config, pathsOf, shardsOf } from '../config.ts';
import type { RoleOps } from '../ops/role-ops.ts';
import { PLACEMENT_LIMITS } from './placement/limits.ts';
import { acquire, step } from './scope.ts';
import type { SharedTails } from './shared-tails.ts';
import type { ServedRole } from './supervision.ts';

export const serversOf = (config: Config): string[] => {
  if (!config.servers) throw DsecError.of('INVALID_ARGUMENT', 'configuration: servers is missing; name the bus, or start everything with dsec up');
  return config.servers.split(',').map((s) => s.trim());
};

/** The role's key when the data directory has one; a bus without accounts needs none. */
export const credentialsOf = (config: Config, role: ServedRole): BusCredentials | undefined => {
  const { credentials } = pathsOf(config);
  const ofNode = role === 'edge' ? readSeed(join(credentials, `edge-${config.edgeName}.nk`)) : undefined;
  const nkeySeed = ofNode ?? readSeed(join(credentials, `role-${role}.nk`));
  return nkeySeed === undefined ? undefined : { nkeySeed };
};

const readSeed = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw thrown;
  }
};

/** A key pair of the data directory; null when it has none. */
export const keyIn = (config: Config, file: string): { seed: string; publicKey: string } | null => {
  const seed = readSeed(join(pathsOf(config).credentials, file));
  return seed === undefined ? null : { seed, publicKey: nkeys.fromSeed(new TextEncoder().encode(seed)).getPublicKey() };
};

type Bus = { readonly connection: NatsConnection; readonly jetStream: JetStreamBus };

/** `tails`: where this process has other roles that follow the log. */
export const openBus = (config: Config, role: ServedRole, ops: RoleOps, tails?: SharedTails): Effect.Effect<Bus, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const connection = yield* acquire(
      () => connectBus({ servers: serversOf(config), credentials: credentialsOf(config, role) }, `dsec-${role}`, log),
      (c) => c.close(),
    );
    const jetStream = yield* acquire(
      () =>
        connectJetStream(connection, {
          readFrom: config.replicas > 1 ? 'leader' : 'direct',
          // What a placement had taken when it died goes to another one after this; no client should wait half a minute for it.
          ...(role === 'placement' ? { ackWaitMs: PLACEMENT_LIMITS.ackWaitMs } : {}),
          report: (line) => ops.report(line),
        }),
      (js) => js.close(),
    );
    const { busDuplicateWindowMs: duplicateWindowMs } = config;
    const settings = { shards: shardsOf(config), replicas: config.replicas, ...(duplicateWindowMs === undefined ? {} : { duplicateWindowMs }) };
    yield* step(() => whenBusAnswers(() => jetStream.ensureStreams(settings), log));
    return { connection, jetStream: ops.watch(jetStream, settings.shards, tails?.of(jetStream.eventLog)) };
  });
