/** The watcher as a process has it. */
import { Effect, type Scope } from 'effect';
import { clockWithOffset } from '#actors/ports/clock.ts';
import type { Config } from '../../config.ts';
import { OPS_LIMITS } from '../../ops/limits.ts';
import { showCounts } from '../../ops/role-gauges.ts';
import type { RoleOps } from '../../ops/role-ops.ts';
import { openBus } from '../open-bus.ts';
import { acquire } from '../scope.ts';
import { Watcher } from './watcher.ts';

export const watcherRole = (config: Config, ops: RoleOps): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'watcher', ops);
    const role = yield* acquire(
      () =>
        Watcher.start({
          connection,
          eventLog: jetStream.eventLog,
          isConnected: () => jetStream.isConnected,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
        }),
      (w) => w.close(),
    );
    ops.check('beats', () => role.deafFor(OPS_LIMITS.beatlessMs));
    showCounts(ops, 'watchedEdges', () => role.counts());
    return null;
  });
