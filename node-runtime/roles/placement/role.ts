/** Placement as a process has it: quota in hand, lanes, lost Edges' sandboxes, and the forgetting of requests. */
import { Effect, type Scope } from 'effect';
import type { RequestState } from '#bus/request/schema.ts';
import { clockWithOffset } from '#actors/ports/clock.ts';
import { type Config, shardsOf } from '../../config.ts';
import type { RoleOps } from '../../ops/role-ops.ts';
import { FORGETTING_LIMITS, startForgetting } from '../forgetting.ts';
import { openBus } from '../open-bus.ts';
import { acquire, step } from '../scope.ts';
import { LostEdges } from './lost-edges.ts';
import { Placement } from './placement.ts';
import { takeHolderName } from './holder-name.ts';
import { QuotaHolder } from './quota-holder.ts';

export const placementRole = (config: Config, ops: RoleOps): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'placement', ops);
    const holder = yield* acquire(
      () => takeHolderName(config.runDir),
      (taken) => taken.release(),
    );
    const quota = yield* acquire(
      () => new QuotaHolder({ connection, clock: clockWithOffset(config.clockOffsetMs), log, holder: holder.name }),
      (q) => q.close(),
    );
    if (holder.hadLives) void quota.inherit();
    const counts = { laneCount: config.laneCount, shardCount: config.shardCount };
    const role = yield* acquire(
      () =>
        new Placement({
          quota,
          connection,
          eventLog: jetStream.eventLog,
          queue: jetStream.commandQueue,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
          ...counts,
        }),
      (p) => p.close(),
    );
    yield* step(() => role.start());
    yield* acquire(
      () =>
        LostEdges.start({
          connection,
          eventLog: jetStream.eventLog,
          queue: jetStream.commandQueue,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
          laneCount: config.laneCount,
        }),
      (lost) => lost.close(),
    );
    yield* acquire(
      () =>
        startForgetting({
          eventLog: jetStream.eventLog,
          shards: shardsOf(config),
          actors: { kind: 'request', home: '_' },
          forgettableAt: ({ commit }) => (commit.state as unknown as RequestState).keyExpiresAt + FORGETTING_LIMITS.auditRetentionMs,
          clock: clockWithOffset(config.clockOffsetMs),
          log,
        }),
      (forgetting) => forgetting.stop(),
    );
    return null;
  });
