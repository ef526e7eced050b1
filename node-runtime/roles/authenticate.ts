/** How a role knows who asks it. */
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import { clockWithOffset } from '#actors/ports/clock.ts';
import type { JetStreamBus } from '#adapters/jetstream/mod.ts';
import type { Config } from '../config.ts';
import type { Log } from '../log/log.ts';
import { type Authenticate, authenticateBy, everybody } from './identity.ts';
import { credentialsOf } from './open-bus.ts';
import { ProjectFeed } from './project-feed.ts';
import { acquire } from './scope.ts';
import type { ServedRole } from './supervision.ts';

/** Who asks, by what this process has heard of projects; on a bus without accounts nobody can be told apart. */
export const authenticateOf = (
  config: Config,
  role: ServedRole,
  log: Log,
  connection: NatsConnection,
  jetStream: JetStreamBus,
): Effect.Effect<Authenticate, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    if (!credentialsOf(config, role)) return everybody;
    const feed = yield* acquire(
      () => ProjectFeed.open({ connection, eventLog: jetStream.eventLog, log }),
      (f) => f.close(),
    );
    return authenticateBy(feed.directory, clockWithOffset(config.clockOffsetMs));
  });
