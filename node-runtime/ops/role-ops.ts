/** One role's part of what its process shows: its log and its bus, watched, and the checks and gauges that are its own. */
import type { BusReport, JetStreamBus } from '#adapters/jetstream/mod.ts';
import type { Shard } from '#bus/ids.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { Log } from '../log/log.ts';
import type { Instruments } from './instruments.ts';
import { OPS_LIMITS } from './limits.ts';
import { LogReading } from './log-reading.ts';
import { observeEventLog, observeQueue } from './observe-bus.ts';
import { observeLog } from './observe-log.ts';
import type { Collector } from './ops.ts';
import type { Check, Checks } from './readiness.ts';

export type RoleOpsOptions = {
  readonly role: string;
  readonly log: Log;
  readonly instruments: Instruments;
  readonly checks: Checks;
  readonly collect: (collector: Collector) => () => void;
};

export class RoleOps {
  /** The role's log; what is said there is counted. */
  readonly log: Log;
  readonly instruments: Instruments;
  readonly #o: RoleOpsOptions;
  readonly #interrupted = new Map<string, string>();
  readonly #listeners = new Set<(stored: StoredCommit) => void>();

  constructor(options: RoleOpsOptions) {
    this.#o = options;
    this.instruments = options.instruments;
    this.log = observeLog(options.log, options.instruments, options.role);
  }

  /** What must hold for this role to do its work. */
  check(name: string, look: Check): void {
    this.#o.checks.add(this.#o.role, name, look);
  }

  /** Sets gauges before each scrape. */
  collect(collector: Collector): void {
    this.#o.collect(collector);
  }

  /** Told of every commit that a tail of this role delivers. */
  onHeard(listener: (stored: StoredCommit) => void): void {
    this.#listeners.add(listener);
  }

  /** What the bus's adapter says of itself. */
  report(line: BusReport): void {
    const consumer = String(line['consumer'] ?? '');
    if (line.event === 'consumer_interrupted') this.#interrupted.set(consumer, line.message ?? 'interrupted');
    if (line.event === 'consumer_reopened') this.#interrupted.delete(consumer);
    this.log.warn('bus.report', { detail: line });
  }

  /** The same bus, watched; its log by another way to it where there is one. */
  watch(bus: JetStreamBus, shards: readonly Shard[], log: EventLog = bus.eventLog): JetStreamBus {
    const { role, instruments } = this.#o;
    const consumers = new Set<string>();
    this.check('bus', () => (bus.isConnected ? null : 'the bus cannot be reached; what is asked meanwhile waits or is refused'));
    this.check('consumers', () => {
      const [first] = this.#interrupted;
      return first ? `consumer ${first[0]} takes no commands: ${first[1]}` : null;
    });
    this.collect(() => instruments.busConnected.set({ role }, bus.isConnected ? 1 : 0));
    this.collect(() => this.#collectBacklog(bus, consumers));
    const reading = new LogReading(() => performance.now());
    this.check('log', () => (bus.isConnected ? reading.look(bus.eventLog, shards) : null));
    this.check('queue', async () => (bus.isConnected ? this.#missingConsumer(bus, consumers) : null));
    const eventLog = observeEventLog(log, instruments, role, reading, (stored) => {
      for (const listener of this.#listeners) listener(stored);
    });
    const commandQueue = observeQueue(bus.commandQueue, instruments, role, (name) => {
      consumers.add(name);
      return () => consumers.delete(name);
    });
    return {
      eventLog,
      commandQueue,
      commandRecords: bus.commandRecords,
      commitTrail: bus.commitTrail,
      backlog: bus.backlog,
      get isConnected() {
        return bus.isConnected;
      },
      ensureStreams: (settings) => bus.ensureStreams(settings),
      checkStreams: (settings) => bus.checkStreams(settings),
      bucket: (name) => bus.bucket(name),
      close: () => bus.close(),
    };
  }

  /** A consumer that the server has lost gives this role nothing, and nobody is told. */
  async #missingConsumer({ backlog }: JetStreamBus, consumers: ReadonlySet<string>): Promise<string | null> {
    if (consumers.size > OPS_LIMITS.consumersAsked) return null;
    const looked = await Promise.all(
      [...consumers].map(async (consumer) => {
        try {
          await backlog.of(consumer);
          return null;
        } catch (thrown) {
          return `consumer ${consumer} cannot be asked: ${(thrown as Error).message}`;
        }
      }),
    );
    return looked.find((one) => one !== null) ?? null;
  }

  /** A gauge that cannot be asked for has no value: an old one would look like a queue that stands still. */
  async #collectBacklog(bus: JetStreamBus, consumers: ReadonlySet<string>): Promise<void> {
    const { role, instruments } = this.#o;
    const { pending, unacknowledged, stored } = instruments;
    if (consumers.size === 0 || consumers.size > OPS_LIMITS.consumersAsked) return;
    await Promise.all([
      bus.backlog.stored().then(
        (commands) => stored.set({ role }, commands),
        () => stored.remove({ role }),
      ),
      ...[...consumers].map(async (consumer) => {
        const labels = { role, consumer };
        try {
          const depth = await bus.backlog.of(consumer);
          pending.set(labels, depth.pending);
          unacknowledged.set(labels, depth.unacknowledged);
        } catch {
          pending.remove(labels);
          unacknowledged.remove(labels);
        }
      }),
    ]);
  }
}
