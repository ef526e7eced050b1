/** Who this Edge is: its actor, its lease, and the generation that fences everything it does. */
import { Effect, type Scope } from 'effect';
import type { Capacity, EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import { edgeDefinition } from '#actors/edge/edge.definition.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';
import { acquire, step } from '../scope.ts';
import { Lease } from './lease.ts';

export type IdentityOptions = {
  readonly edge: EdgeName;
  readonly capacity: Capacity;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /** The lease could not be renewed in time, or could be again. */
  readonly onFence: (fenced: boolean) => void;
  readonly onSuperseded: (message: string) => void;
};

/** Registers the Edge under a new generation and keeps its lease renewed while the scope lasts. */
export const openIdentity = (o: IdentityOptions): Effect.Effect<Lease, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const driver = yield* acquire(
      () =>
        new ActorDriver<EdgeState, EdgeCommand, EdgeEvent, never>({
          definition: edgeDefinition,
          eventLog: o.eventLog,
          clock: o.clock,
          log: o.log,
          armDeadlines: false, // a lease that runs out is for watchers to see, not for its holder
          runEffect: () => Promise.resolve(null),
          deadlineCommand: () => {
            throw new Error('an Edge does not declare itself lost');
          },
        }),
      (d) => d.close(),
    );
    const lease = yield* acquire(
      () =>
        new Lease({
          edge: o.edge,
          driver,
          capacity: o.capacity,
          clock: o.clock,
          log: o.log,
          onFenced: () => o.onFence(true),
          onRenewed: () => o.onFence(false),
          onSuperseded: (error) => o.onSuperseded(error.message),
        }),
      (l) => l.stop(),
    );
    const generation = yield* step(() => lease.acquire());
    o.log.info('edge.registered', { generation, edge: o.edge, capacity: o.capacity });
    return lease;
  });
