/**
 * The watcher role: hears beats and commits of Edges, says which nodes are suspect, and commits `EdgeLost` once. @paper §3.2
 *
 * Any number may run. Each counts for itself; the Edge's actor takes the first finding, compare-and-set, and ignores the others.
 * Owns no state: what it knows it has heard since it started. Judgement is in `actors/watcher`; here are time and I/O.
 */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { Beat, type EdgeCommand, type EdgeEvent, type EdgeLostNotice, type EdgeState } from '#bus/edge/schema.ts';
import { encode } from '#bus/envelope.ts';
import type { EdgeName } from '#bus/ids.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { readState } from '#bus/records.ts';
import { BEAT_FILTER, edgeAddress, lostSubject, SYSTEM_PROJECT } from '#bus/subjects.ts';
import { edgeDefinition } from '#actors/edge/edge.definition.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { judgeBeat, judgeSilence, type NodeHealth } from '#actors/watcher/health.ts';
import { LeaseWatch } from '#actors/watcher/leases.ts';
import { HEALTH_POLICY } from '#actors/watcher/limits.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';
import { EdgeStates } from '../edge-states.ts';
import { WATCHER_LIMITS } from './limits.ts';

export type WatcherOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  /** Whether the bus can be heard right now. */
  readonly isConnected: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
};

type EdgeDriver = ActorDriver<EdgeState, EdgeCommand, EdgeEvent, never>;

export class Watcher {
  readonly #o: WatcherOptions;
  readonly #leases = new LeaseWatch();
  readonly #health = new Map<EdgeName, NodeHealth>();
  readonly #reading = new Set<EdgeName>();
  readonly #notices = new Map<EdgeName, NodeJS.Timeout>();
  readonly #driver: EdgeDriver;
  #edges: EdgeStates | undefined;
  #beats: { unsubscribe(): void } | undefined;
  #ticker: NodeJS.Timeout | undefined;
  #heardAtMs: number;

  private constructor(options: WatcherOptions) {
    this.#o = options;
    this.#heardAtMs = options.clock.monotonicMs();
    this.#driver = new ActorDriver<EdgeState, EdgeCommand, EdgeEvent, never>({
      definition: edgeDefinition,
      eventLog: options.eventLog,
      clock: options.clock,
      log: options.log,
      armDeadlines: false, // leases are counted here, on a clock that nobody can set
      runEffect: () => Promise.resolve(null),
      deadlineCommand: () => {
        throw new Error('a lease is no deadline of the actor');
      },
    });
  }

  static async start(options: WatcherOptions): Promise<Watcher> {
    const watcher = new Watcher(options);
    watcher.#beats = options.connection.subscribe(BEAT_FILTER, {
      callback: (error, message) => {
        const beat = error ? undefined : Beat.safeParse(jsonOrUndefined(message.data));
        if (beat?.success) watcher.#heard(beat.data);
      },
    });
    void watcher.#followConnection();
    watcher.#edges = await EdgeStates.open({ ...options, onChange: (state) => watcher.#learned(state) });
    watcher.#ticker = setInterval(() => watcher.#tick(), WATCHER_LIMITS.tickMs);
    return watcher;
  }

  /** Nodes by judgement; those that were declared lost are counted apart. */
  counts(): Record<NodeHealth['health'] | 'lost', number> {
    const counts = { healthy: 0, suspect: 0, lost: 0 };
    for (const { name, status } of this.#edges?.all() ?? []) {
      if (status === 'lost') counts.lost += 1;
      else if (status === 'active') counts[this.#health.get(name)?.health ?? 'suspect'] += 1;
    }
    return counts;
  }

  /** Null, or why it cannot judge: nodes are on duty, and none of them has been heard for so long. */
  deafFor(ms: number): string | null {
    const onDuty = this.#edges?.all().filter(({ status }) => status === 'active').length ?? 0;
    const silentMs = this.#now() - this.#heardAtMs;
    return onDuty === 0 || silentMs <= ms ? null : `none of ${onDuty} nodes has been heard for ${Math.round(silentMs / 1_000)} s`;
  }

  close(): void {
    clearInterval(this.#ticker);
    for (const timer of this.#notices.values()) clearInterval(timer);
    this.#beats?.unsubscribe();
    this.#edges?.close();
    this.#driver.close();
  }

  #now(): number {
    return this.#o.clock.monotonicMs();
  }

  #heard(beat: Beat): void {
    this.#heardAtMs = this.#now();
    const before = this.#health.get(beat.edge);
    if (!before && this.#health.size >= HEALTH_POLICY.nodes) return;
    if (before && beat.generation < before.generation) return;
    this.#judged(beat.edge, before, judgeBeat(before, beat, this.#now(), this.#o.clock.now()));
  }

  #judged(edge: EdgeName, before: NodeHealth | undefined, after: NodeHealth): void {
    this.#health.set(edge, after);
    if (after.health !== (before?.health ?? 'healthy'))
      this.#o.log.warn(`node.${after.health}`, { edge, conditions: after.conditions, generation: after.generation });
  }

  #learned(state: EdgeState): void {
    this.#leases.learned(state, this.#now());
    clearInterval(this.#notices.get(state.name));
    this.#notices.delete(state.name);
    if (state.status === 'lost') this.#announce(state);
  }

  /** Clients may be away at the moment of the loss, and nobody else tells them. */
  #announce({ name, lostGeneration, lostAt }: EdgeState): void {
    const { connection, clock } = this.#o;
    const notice: EdgeLostNotice = { v: 1, edge: name, generation: lostGeneration, at: lostAt ?? clock.now() };
    let left: number = WATCHER_LIMITS.noticeRepeats;
    const say = () => {
      if (!connection.isClosed()) connection.publish(lostSubject(name), encode('lost', notice));
      left -= 1;
      if (left > 0) return;
      clearInterval(this.#notices.get(name));
      this.#notices.delete(name);
    };
    this.#notices.set(name, setInterval(say, WATCHER_LIMITS.noticeEveryMs));
    say();
  }

  #tick(): void {
    const atMs = this.#now();
    if (!this.#o.isConnected()) {
      this.#leases.interrupted(atMs);
      return;
    }
    for (const [edge, health] of this.#health) {
      const after = judgeSilence(health, atMs);
      if (after !== health) this.#judged(edge, health, after);
    }
    for (const edge of this.#leases.overdue(atMs)) if (!this.#reading.has(edge)) void this.#confirm(edge);
  }

  async #confirm(edge: EdgeName): Promise<void> {
    this.#reading.add(edge);
    try {
      const stored = await this.#o.eventLog.last(edgeAddress(edge));
      if (!stored) return;
      const found = this.#leases.confirmed(readState('edge', stored.commit.state, stored.commit.schema), this.#now());
      if (found) await this.#declare(edge, found);
    } catch (thrown) {
      this.#leases.unreadable(edge);
      this.#o.log.warn('watcher.log_unreadable', { edge, message: (thrown as Error).message });
    } finally {
      this.#reading.delete(edge);
    }
  }

  async #declare(edge: EdgeName, finding: Extract<EdgeCommand, { type: 'DeclareLost' }>): Promise<void> {
    // Its own id for each watcher: the log takes one finding, and every other is told that it came second.
    const commandId = `${SYSTEM_PROJECT}:${edge}:lost:${finding.generation}:${randomUUID()}`;
    const meta = { commandId, correlationId: commandId, principal: 'watcher', at: this.#o.clock.now() };
    const result = await this.#driver.submit(edgeAddress(edge), finding, meta);
    const outcome = result.ok ? result.decision : result.error.code;
    this.#o.log.warn('edge.declared_lost', { edge, generation: finding.generation, silentMs: finding.silentMs, outcome });
    this.#driver.evict(edgeAddress(edge)); // others write here too: the next decision begins with what they wrote
  }

  /** Between two ticks a connection may be lost and found again, with renewals in the gap. */
  async #followConnection(): Promise<void> {
    for await (const status of this.#o.connection.status())
      if (status.type === 'disconnect' || status.type === 'reconnect') this.#leases.interrupted(this.#now());
  }
}
