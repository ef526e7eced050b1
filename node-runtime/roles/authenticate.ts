/** How a role knows who asks it. */
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import { OP_DEMAND } from '#bus/api/actions.ts';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import { clockWithOffset } from '#actors/ports/clock.ts';
import { refusalOf } from '#actors/project/authority.ts';
import type { JetStreamBus } from '#adapters/jetstream/mod.ts';
import type { Config } from '../config.ts';
import type { Log } from '../log/log.ts';
import { type Authenticate, authenticateBy, everybody } from './identity.ts';
import { credentialsOf } from './open-bus.ts';
import { ProjectFeed } from './project-feed.ts';
import { acquire } from './scope.ts';
import type { ServedRole } from './supervision.ts';

/** Throws, perhaps later, where the caller may not operate on sandboxes of the project. */
export type MayOperate = (message: Pick<Msg, 'headers' | 'reply'>, project: ProjectName) => void | Promise<void>;

/**
 * Who may operate, asked by the Edge of each operation: the permissions of a connection are as old as the connection, a grant that was
 * taken away since is not in them.
 */
export const mayOperateOf = (config: Config, log: Log, connection: NatsConnection, jetStream: JetStreamBus): Effect.Effect<MayOperate, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    if (!credentialsOf(config, 'edge')) return () => {};
    const feed = yield* acquire(
      () => ProjectFeed.open({ connection, eventLog: jetStream.eventLog, log }),
      (f) => f.close(),
    );
    const authenticate = authenticateBy(feed.directory, clockWithOffset(config.clockOffsetMs));
    const check: MayOperate = (message, project) => {
      const refused = refusalOf(OP_DEMAND, authenticate(message, project), project, 'operation');
      if (refused) throw new DsecError(refused);
    };
    return (message: Parameters<MayOperate>[0], project: ProjectName) => {
      try {
        return check(message, project);
      } catch {
        return feed.lookAgain().then(() => check(message, project));
      }
    };
  });

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
