/**
 * The bus on NATS JetStream: adapters of the ports `EventLog` and `CommandQueue`, and what prepares the server for them.
 *
 * ```ts
 * const bus = connectJetStream(await connect(busConnectionOptions(url, 'edge-a')));
 * await bus.ensureStreams({ shards });
 * await bus.eventLog.append(…);
 * ```
 * A process that publishes heavily and tails as well should use two connections: deliveries would wait behind its writes.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import type { CommitTrail } from '#actors/ports/commit-trail.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { JetStreamApi } from './api.ts';
import { JetStreamCommandRecords } from './command-records.ts';
import { JetStreamCommandQueue } from './command-queue.ts';
import { commitTrailOf } from './commit-trail.ts';
import { assertServerVersion, ConnectionWatch } from './connection.ts';
import type { BusContext, BusReport } from './context.ts';
import { JetStreamEventLog } from './event-log.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import { ObjectBucket } from './object-bucket.ts';
import { Mux } from './mux.ts';
import { Publisher } from './publisher.ts';
import { Reader, type ReadFrom } from './reader.ts';
import { checkStreams, ensureStreams, type StreamSettings } from './streams.ts';

export { busConnectionOptions, MINIMUM_SERVER } from './connection.ts';
export type { BusReport } from './context.ts';
export { JETSTREAM_LIMITS } from './limits.ts';
export { type BucketObject, ObjectBucket, type StoredObject } from './object-bucket.ts';
export type { ReadFrom } from './reader.ts';
export type { StreamSettings } from './streams.ts';

export type JetStreamOptions = {
  /** `leader` in a cluster, where another replica may not have the newest commit yet. Default `direct`. */
  readonly readFrom?: ReadFrom;
  readonly inboxPrefix?: string;
  readonly requestTimeoutMs?: number;
  readonly ackWaitMs?: number;
  /** One line for each outage, mended consumer and message that nobody can read. */
  readonly report?: (line: BusReport) => void;
};

export type JetStreamBus = {
  readonly eventLog: EventLog;
  readonly commandQueue: CommandQueue;
  readonly commandRecords: CommandRecords;
  readonly commitTrail: CommitTrail;
  /** False while the connection is down: whoever answers for readiness should say so. */
  readonly isConnected: boolean;
  /** Creates or corrects the streams; throws BUS_MISCONFIGURED where the server will not have them so. */
  ensureStreams(settings: StreamSettings): Promise<void>;
  /** The check alone, for roles without the right to create streams. */
  checkStreams(settings: StreamSettings): Promise<void>;
  /** How much waits in the work queue: as a whole, and before one consumer. Rejects when nobody answers. */
  readonly backlog: {
    stored(): Promise<number>;
    of(consumer: string): Promise<{ readonly pending: number; readonly unacknowledged: number }>;
  };
  /** A bucket of the object store; nothing is asked of the server yet. */
  bucket(name: string): ObjectBucket;
  /** Ends what is outstanding as `unknown`. Tails and consumers are closed by their owners before; the connection stays open. */
  close(): void;
};

/** Throws BUS_TOO_OLD. Takes a connection made with `busConnectionOptions`, and leaves it to its owner. */
export const connectJetStream = (nc: NatsConnection, options: JetStreamOptions = {}): JetStreamBus => {
  assertServerVersion(nc);
  const watch = new ConnectionWatch(nc);
  const mux = new Mux(nc, watch, { inboxPrefix: options.inboxPrefix, timeoutMs: options.requestTimeoutMs });
  const api = new JetStreamApi(mux);
  const publisher = new Publisher(nc, mux);
  const acknowledgements = new Acknowledgements(nc, watch, mux);
  const context: BusContext = { nc, watch, mux, api, acknowledgements, inboxPrefix: options.inboxPrefix, report: options.report ?? (() => {}) };
  const reader = new Reader(mux, api);
  return {
    eventLog: new JetStreamEventLog(context, publisher, reader, options.readFrom ?? 'direct'),
    commandQueue: new JetStreamCommandQueue(context, publisher, reader, options.ackWaitMs ?? JETSTREAM_LIMITS.ackWaitMs),
    commandRecords: new JetStreamCommandRecords(context, publisher, reader),
    commitTrail: commitTrailOf(context),
    get isConnected() {
      return watch.isConnected;
    },
    ensureStreams: (settings) => ensureStreams(api, settings),
    checkStreams: (settings) => checkStreams(api, settings),
    backlog: {
      stored: async () => (await api.streamInfo(COMMANDS_STREAM)).state.messages,
      of: async (consumer) => {
        const { num_pending, num_ack_pending } = await api.consumerInfo(COMMANDS_STREAM, consumer);
        return { pending: num_pending, unacknowledged: num_ack_pending };
      },
    },
    bucket: (name) => new ObjectBucket(name, context, publisher, reader),
    close: () => mux.close(),
  };
};
