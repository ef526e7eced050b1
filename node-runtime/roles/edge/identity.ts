/** Who this Edge is: its actor, its lease, and the generation that fences everything it does. */
import { Effect, type Scope } from 'effect';
import type { Capacity, EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import { type Commit, decodeCommit } from '#bus/envelope.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { NatsConnection } from '@nats-io/transport-node';
import { edgeAddress, outSubject } from '#bus/subjects.ts';
import { edgeDefinition } from '#actors/edge/edge.definition.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';
import { acquire, step } from '../scope.ts';
import { type EdgeActorDriver, Lease } from './lease.ts';

export type Identity = { readonly lease: Lease; readonly driver: EdgeActorDriver; readonly state: () => EdgeState };

export type IdentityOptions = {
  readonly edge: EdgeName;
  readonly capacity: Capacity;
  readonly leaseMs: number;
  readonly connection: NatsConnection;
  readonly queue: CommandQueue;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /** The lease could not be renewed in time, or could be again. */
  readonly onFence: (fenced: boolean) => void;
  readonly onSuperseded: (message: string) => void;
  readonly onLost: (message: string) => void;
};

/** Registers the Edge under a new generation and keeps its lease renewed while the scope lasts. */
export const openIdentity = (o: IdentityOptions): Effect.Effect<Identity, unknown, Scope.Scope> =>
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
          leaseMs: o.leaseMs,
          clock: o.clock,
          log: o.log,
          onFenced: () => o.onFence(true),
          onRenewed: () => o.onFence(false),
          onSuperseded: (error) => o.onSuperseded(error.message),
          onLost: (error) => o.onLost(error.message),
        }),
      (l) => l.stop(),
    );
    const generation = yield* step(() => lease.acquire(() => o.queue.lastSequence()));
    o.log.info('edge.registered', { generation, edge: o.edge, capacity: o.capacity });
    yield* acquire(
      () => followSelf(o, lease),
      (subscription) => subscription.unsubscribe(),
    );
    const state = (): EdgeState => driver.peek(edgeAddress(o.edge))?.state as EdgeState;
    return { lease, driver, state };
  });

/** What others write about this node (a cordon, a successor, a loss) is looked at when it happens, not at the next renewal. */
const followSelf = ({ connection, edge }: IdentityOptions, lease: Lease): { unsubscribe(): void } =>
  connection.subscribe(outSubject(edgeAddress(edge)), {
    callback: (error, message) => {
      const commit = error ? undefined : commitOf(message.data);
      if (commit && !commit.commandId.startsWith(lease.commandPrefix)) lease.check();
    },
  });

const commitOf = (data: Uint8Array): Commit | undefined => {
  try {
    return decodeCommit(data);
  } catch {
    return undefined; // the log is asked anyway, at the next renewal
  }
};
