/** The jobs role as a process has it: it holds job and rollout actors, with hands that the program lends it. */
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import type { ClientHands } from '#actors/ports/client-hands.ts';
import { clockWithOffset } from '#actors/ports/clock.ts';
import { type Config, shardsOf } from '../../config.ts';
import { showCounts } from '../../ops/role-gauges.ts';
import type { RoleOps } from '../../ops/role-ops.ts';
import { authenticateOf } from '../authenticate.ts';
import { openBus } from '../open-bus.ts';
import { acquire } from '../scope.ts';
import { Jobs } from './jobs.ts';

/** What the program lends to its roles: they may not know the SDK, the program does. */
export type Lent = { readonly hands: (connection: NatsConnection) => ClientHands };

export const jobsRole = (config: Config, ops: RoleOps, { hands }: Lent): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'jobs', ops);
    const clock = clockWithOffset(config.clockOffsetMs);
    const authenticate = yield* authenticateOf(config, 'jobs', log, connection, jetStream);
    const role = yield* acquire(
      () => new Jobs({ connection, eventLog: jetStream.eventLog, clock, log, shards: shardsOf(config), hands: hands(connection), authenticate }),
      (j) => j.close(),
    );
    role.start();
    ops.check('work', () => role.missed());
    showCounts(ops, 'heldActors', () => role.held());
    return null;
  });
