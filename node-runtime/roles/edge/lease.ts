/**
 * The Edge's lease: registration at start (a new generation), renewal, and what follows when renewal fails.
 *
 * An Edge that cannot renew for `leaseMs`, measured on the monotonic clock from the moment the last successful renewal was
 * *sent*, is fenced: it refuses operations and freezes its sandboxes, because a watcher may declare it lost from then on.
 * A renewal that succeeds later thaws them. A renewal refused as fenced is final: another process owns this name, or a watcher
 * has declared this generation lost, and only a new registration brings the node back.
 */
import { randomUUID } from 'node:crypto';
import { DsecError } from '#bus/errors.ts';
import type { Capacity, EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import { edgeAddress, SYSTEM_PROJECT } from '#bus/subjects.ts';
import type { DurationMs } from '#bus/units.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { Log } from '../../log/log.ts';
import type { ActorDriver } from '../driver/driver.ts';
import { EDGE_LIMITS } from './limits.ts';

export type EdgeActorDriver = ActorDriver<EdgeState, EdgeCommand, EdgeEvent, never>;

export type LeaseOptions = {
  readonly edge: EdgeName;
  readonly driver: EdgeActorDriver;
  readonly capacity: Capacity;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly onFenced: () => void;
  readonly onRenewed: () => void;
  /** Another process has registered under this name: this one must end. */
  readonly onSuperseded: (error: DsecError) => void;
  /** This generation was declared lost: its sandboxes are lost, and this process must end and register anew. */
  readonly onLost: (error: DsecError) => void;
};

export class Lease {
  readonly #o: LeaseOptions;
  readonly #instance = randomUUID();
  #generation = 0;
  #renewedAtMs = 0;
  #renewing = false;
  #fenced = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LeaseOptions) {
    this.#o = options;
  }

  get generation(): number {
    return this.#generation;
  }

  get fenced(): boolean {
    return this.#fenced;
  }

  /**
   * Registers and starts to renew; what was sent to a generation that was lost is fenced before it answers. Answers with the
   * generation that fences everything this process does. `lastSequence`: newest place in COMMANDS now.
   */
  async acquire(lastSequence: () => Promise<number>): Promise<number> {
    const queueSequence = await lastSequence();
    const sentAtMs = this.#o.clock.monotonicMs();
    const { capacity } = this.#o;
    const result = await this.#submit({
      type: 'RegisterEdge',
      capacity,
      backends: ['container'],
      leaseMs: this.#o.leaseMs as DurationMs,
      instance: this.#instance,
      queueSequence,
    });
    if (!result.ok) throw new DsecError(result.error);
    const held = this.#o.driver.peek(edgeAddress(this.#o.edge));
    if (!held || held.state.instance !== this.#instance)
      throw DsecError.of('EDGE_FENCED', `another process has just registered as node ${this.#o.edge}; give one of them another edgeName`);
    this.#generation = held.state.generation;
    this.#renewedAtMs = sentAtMs;
    this.#timer = setInterval(() => this.#tick(), this.#renewMs / EDGE_LIMITS.leaseTicksPerRenewal);
    if (held.state.fencing) await this.#fenceQueue(await lastSequence());
    return this.#generation;
  }

  async #fenceQueue(queueSequence: number): Promise<void> {
    const result = await this.#submit({ type: 'FenceQueue', generation: this.#generation, instance: this.#instance, queueSequence });
    if (!result.ok) throw new DsecError(result.error);
  }

  /** Begins the id of every command of this process. */
  get commandPrefix(): string {
    return `${SYSTEM_PROJECT}:${this.#o.edge}:${this.#instance}:`;
  }

  /** Somebody else has written about this node: the log is asked at once what holds. */
  check(): void {
    if (!this.#renewing && this.#timer) void this.#renew();
  }

  get #renewMs(): number {
    return this.#o.leaseMs / EDGE_LIMITS.renewalsPerLease;
  }

  /** Gives the name back at an orderly end. */
  async retire(): Promise<void> {
    clearInterval(this.#timer);
    await this.#submit({ type: 'RetireEdge', generation: this.#generation });
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const ageMs = this.#o.clock.monotonicMs() - this.#renewedAtMs;
    if (!this.#fenced && ageMs > this.#o.leaseMs) {
      this.#fenced = true;
      this.#o.log.error('lease.fenced', { ageMs: Math.round(ageMs), generation: this.#generation });
    }
    if (this.#fenced) this.#o.onFenced(); // again and again: what was being launched when the lease ended is frozen too
    if (ageMs >= this.#renewMs && !this.#renewing) void this.#renew();
  }

  async #renew(): Promise<void> {
    this.#renewing = true;
    const sentAtMs = this.#o.clock.monotonicMs();
    const result = await this.#submit({
      type: 'RenewLease',
      generation: this.#generation,
      instance: this.#instance,
      leaseMs: this.#o.leaseMs as DurationMs,
    });
    this.#renewing = false;
    if (result.ok) {
      this.#renewedAtMs = sentAtMs;
      if (this.#fenced && this.#o.clock.monotonicMs() - sentAtMs < this.#o.leaseMs) {
        this.#fenced = false;
        this.#o.log.info('lease.renewed_after_fence', { generation: this.#generation });
        this.#o.onRenewed();
      }
    } else if (result.error.code === 'EDGE_FENCED') {
      this.stop();
      const { generation, status } = result.error.details;
      const isLost = generation === this.#generation && status === 'lost';
      (isLost ? this.#o.onLost : this.#o.onSuperseded)(new DsecError(result.error));
    } else this.#o.log.warn('lease.not_renewed', { code: result.error.code, message: result.error.message });
  }

  #submit(command: EdgeCommand): Promise<CommandResult> {
    const id = `${this.commandPrefix}${command.type}:${randomUUID()}`;
    const meta: CommandMeta = { commandId: id, correlationId: id, principal: `edge/${this.#o.edge}`, at: this.#o.clock.now() };
    return this.#o.driver.submit(edgeAddress(this.#o.edge), command, meta);
  }
}
