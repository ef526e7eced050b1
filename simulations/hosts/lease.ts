/** The Edge's lease, as `roles/edge/lease.ts` keeps it: renewed three times per lease, fenced when it could not be. */
import type { Capacity, EdgeState } from '#bus/edge/schema.ts';
import type { EdgeCommand, EdgeEvent } from '#bus/edge/schema.ts';
import type { WireError } from '#bus/errors.ts';
import type { EdgeName } from '#bus/ids.ts';
import { edgeAddress, SYSTEM_PROJECT } from '#bus/subjects.ts';
import type { DurationMs } from '#bus/units.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { ActorRunner } from './actor-runner.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

export type EdgeActorRunner = ActorRunner<EdgeState, EdgeCommand, EdgeEvent, never>;
export type LeaseEvents = {
  /** Said at every look while it holds: what was being launched when the lease ended is frozen too. */
  readonly fenced: () => void;
  readonly renewed: () => void;
  /** Superseded, or declared lost: this process must end. */
  readonly over: (error: WireError) => void;
};

export class SimLease {
  readonly #process: Process;
  readonly #runner: EdgeActorRunner;
  readonly #edge: EdgeName;
  readonly #capacity: Capacity;
  readonly #events: LeaseEvents;
  readonly #instance: string;
  #generation = 0;
  #renewedAtMs = 0;
  #renewing = false;
  #stopped = false;
  fenced = false;

  constructor(process: Process, runner: EdgeActorRunner, edge: EdgeName, capacity: Capacity, events: LeaseEvents) {
    this.#process = process;
    this.#runner = runner;
    this.#edge = edge;
    this.#capacity = capacity;
    this.#events = events;
    this.#instance = process.freshId();
  }

  get generation(): number {
    return this.#generation;
  }
  get state(): EdgeState | undefined {
    return this.#runner.peek(edgeAddress(this.#edge))?.state;
  }
  isOwn(commandId: string): boolean {
    return commandId.startsWith(this.#prefix);
  }

  acquire(done: (error: WireError | null) => void): void {
    this.#queueSequence(done, (queueSequence) => this.#register(queueSequence, done));
  }

  #register(queueSequence: number, done: (error: WireError | null) => void): void {
    const sentAtMs = this.#process.clock.monotonicMs();
    const leaseMs = HOST_LIMITS.leaseMs as DurationMs;
    const capacity = this.#capacity;
    this.#submit({ type: 'RegisterEdge', capacity, backends: ['container'], leaseMs, instance: this.#instance, queueSequence }, (result) => {
      if (!result.ok) return done(result.error);
      this.#generation = this.state?.generation ?? 0;
      this.#renewedAtMs = sentAtMs;
      this.#process.every(HOST_LIMITS.leaseMs / HOST_LIMITS.renewalsPerLease / HOST_LIMITS.leaseTicksPerRenewal, 'lease', () => this.#tick());
      if (this.state?.fencing) this.#queueSequence(done, (newest) => this.#fenceQueue(newest, done));
      else done(null);
    });
  }

  #fenceQueue(queueSequence: number, done: (error: WireError | null) => void): void {
    this.#submit({ type: 'FenceQueue', generation: this.#generation, instance: this.#instance, queueSequence }, (result) =>
      done(result.ok ? null : result.error),
    );
  }

  #queueSequence(failed: (error: WireError) => void, then: (sequence: number) => void): void {
    this.#process.queue.lastSequence((newest) => (newest.ok ? then(newest.value) : failed(newest.error)));
  }

  /** Somebody else has written about this node. */
  check(): void {
    if (!this.#renewing && !this.#stopped && this.#generation > 0) this.#renew();
  }

  #tick(): void {
    if (this.#stopped) return;
    const ageMs = this.#process.clock.monotonicMs() - this.#renewedAtMs;
    if (ageMs > HOST_LIMITS.leaseMs) this.fenced = true;
    if (this.fenced) this.#events.fenced();
    if (ageMs >= HOST_LIMITS.leaseMs / HOST_LIMITS.renewalsPerLease && !this.#renewing) this.#renew();
  }

  #renew(): void {
    this.#renewing = true;
    const sentAtMs = this.#process.clock.monotonicMs();
    const leaseMs = HOST_LIMITS.leaseMs as DurationMs;
    this.#submit({ type: 'RenewLease', generation: this.#generation, instance: this.#instance, leaseMs }, (result) => {
      this.#renewing = false;
      if (result.ok) {
        this.#renewedAtMs = sentAtMs;
        if (!this.fenced || this.#process.clock.monotonicMs() - sentAtMs >= HOST_LIMITS.leaseMs) return;
        this.fenced = false;
        this.#events.renewed();
      } else if (result.error.code === 'EDGE_FENCED') {
        this.#stopped = true;
        this.#events.over(result.error);
      }
    });
  }

  get #prefix(): string {
    return `${SYSTEM_PROJECT}:${this.#edge}:${this.#instance}:`;
  }

  #submit(command: EdgeCommand, done: (result: CommandResult) => void): void {
    const id = `${this.#prefix}${command.type}:${this.#process.freshId()}`;
    const meta = { commandId: id, correlationId: id, principal: `edge/${this.#edge}`, at: this.#process.clock.now() };
    this.#runner.submit(edgeAddress(this.#edge), command, meta, done);
  }
}
