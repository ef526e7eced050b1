/**
 * Takes this Edge's commands from the queue: packed creates through admission, life-cycle commands to their actor.
 *
 * A message is acknowledged only after everything it caused is durable; whatever arrives twice is answered by the actors.
 * Does not decide anything about sandboxes: that is `actors/sandbox`.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { CommandReply, GrantedLives } from '#bus/api/schema.ts';
import { type CommandEnvelope, decodeCommand, encode, invalid } from '#bus/envelope.ts';
import { DsecError, toWireError, type WireError, wireError } from '#bus/errors.ts';
import { type EdgeName, SandboxId } from '#bus/ids.ts';
import { safeParse } from '#bus/proof.ts';
import { type LaunchSandboxes, SandboxBusCommand, type SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { type ActorAddress, edgeCommandFilter, sandboxAddress } from '#bus/subjects.ts';
import type { Admission } from '#actors/edge/admission.ts';
import { isGoal, overtookItsCreate, unsettledBy } from '#actors/edge/launch.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandConsumer, CommandQueue, Delivery } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { SandboxEffect } from '#actors/sandbox/sandbox.effects.ts';
import { SpanKind } from '@opentelemetry/api';
import { traced } from '../../tracing/spans.ts';
import type { Log } from '../../log/log.ts';
import type { ActorDriver } from '../driver/driver.ts';
import { EDGE_LIMITS } from './limits.ts';
import { PackedCreates } from './packed-creates.ts';
import type { Settlements } from './settlements.ts';

export type SandboxDriver = ActorDriver<SandboxState, SandboxCommand, SandboxEvent, SandboxEffect>;

export type EdgeCommandsOptions = {
  readonly edge: EdgeName;
  readonly generation: number;
  readonly connection: NatsConnection;
  readonly queue: CommandQueue;
  readonly eventLog: EventLog;
  readonly driver: SandboxDriver;
  readonly admission: Admission;
  readonly clock: Clock;
  readonly log: Log;
  readonly laneCount: number;
  /** Whether new sandboxes are taken: false while draining or fenced. */
  readonly accepting: () => boolean;
  /** Creates up to this place in the queue were sent to a lost generation. */
  readonly fencedSequence: number;
  /** Layers of the spec that this node cannot get; checked before anything is reserved. */
  readonly missingLayer: (spec: LaunchSandboxes['spec']) => string | null;
  /** Learns of layers that were stored a moment ago. */
  readonly catchUpLayers: () => Promise<void>;
  readonly layersLocal: (layers: LaunchSandboxes['spec']['layers']) => boolean;
  /** Free on the node's disk, right now. */
  readonly freeDiskMiB: () => number;
  readonly availableMemoryMiB: () => number;
  /** What the node is and has. */
  readonly labels: Readonly<Record<string, string>>;
  readonly settlements: Settlements;
  /** Every create up to this place in COMMANDS has been through admission. */
  readonly onAdmitted: (sequence: number) => void;
};

/** Starts consuming. The consumer is made anew, so that what an earlier process left unacknowledged comes back in order. */
export const consumeEdgeCommands = (options: EdgeCommandsOptions): Promise<CommandConsumer> =>
  options.queue.consume(
    { name: `edge-${options.edge}`, filter: edgeCommandFilter(options.edge), fresh: true, maxInFlight: EDGE_LIMITS.commandsInFlight },
    (delivery) => new EdgeCommand(options, delivery).handle(),
  );

class EdgeCommand {
  readonly #o: EdgeCommandsOptions;
  readonly #delivery: Delivery;

  constructor(options: EdgeCommandsOptions, delivery: Delivery) {
    this.#o = options;
    this.#delivery = delivery;
  }

  async handle(): Promise<void> {
    const startedAt = this.#o.clock.monotonicMs();
    let envelope: CommandEnvelope;
    try {
      envelope = decodeCommand(this.#delivery.data);
    } catch (thrown) {
      this.#refuseMessage(toWireError(thrown));
      return;
    }
    try {
      await traced(spanNameOf(envelope), { parent: envelope.traceparent, kind: SpanKind.CONSUMER }, (traceparent) =>
        this.#perform({ ...envelope, traceparent }),
      );
    } catch (thrown) {
      const error = toWireError(thrown);
      if (error.code === 'MALFORMED_MESSAGE') this.#refuseMessage(error);
      else {
        this.#o.log.warn('command.retried', { commandId: envelope.id, code: error.code, message: error.message });
        this.#delivery.retry(EDGE_LIMITS.earlyStopRetryMs);
      }
    }
    this.#o.log.debug('command.handled', { commandId: envelope.id, type: envelope.data.type, durationMs: this.#o.clock.monotonicMs() - startedAt });
  }

  #perform(envelope: CommandEnvelope): Promise<void> {
    if (envelope.data.type === 'LaunchSandboxes') return this.#packed(envelope).launch();
    if (envelope.data.type === 'ReleaseSandboxes') return this.#packed(envelope).release();
    return this.#lifecycle(envelope);
  }

  #refuseMessage(error: WireError): void {
    this.#o.log.warn('command.discarded', { code: error.code, message: error.message, subject: this.#delivery.subject });
    this.#delivery.discard(error.code);
  }

  #packed(envelope: CommandEnvelope): PackedCreates {
    return new PackedCreates(this.#o, this.#delivery, envelope, (commandId) => this.#meta(envelope, commandId));
  }

  // Life-cycle commands ----------------------------------------------------------------------------------------

  async #lifecycle(envelope: CommandEnvelope): Promise<void> {
    const id = SandboxId.safeParse(this.#delivery.subject.split('.').at(-1));
    if (!id.success) throw DsecError.of('MALFORMED_MESSAGE', `subject ${this.#delivery.subject.slice(0, 200)} names no sandbox`);
    const parsed = safeParse(SandboxBusCommand, envelope.data);
    if (!parsed.success) throw invalid('MALFORMED_MESSAGE', `command ${String(envelope.data.type).slice(0, 64)}`, parsed.error);
    const command = parsed.data;
    if (envelope.deadlineAt !== undefined && envelope.deadlineAt < this.#o.clock.now()) {
      this.#reply(envelope, {
        ok: false,
        error: wireError('DEADLINE_EXCEEDED', `${command.type} reached node ${this.#o.edge} after its deadline`, { outcome: 'not_applied' }),
      });
      this.#delivery.ack();
      return;
    }
    const address = sandboxAddress(envelope.project, id.data);
    const result = await this.#o.driver.submit(address, command, this.#meta(envelope, envelope.id, isGoal(command.type)));
    if (overtookItsCreate(command.type, result, this.#delivery.attempt)) {
      this.#delivery.retry(EDGE_LIMITS.earlyStopRetryMs);
      return;
    }
    const unsettled = unsettledBy(result);
    if (unsettled) throw new DsecError(unsettled);
    this.#reply(envelope, result, command.type === 'ExtendLives' ? this.#livesOf(address) : undefined);
    this.#delivery.ack();
  }

  /** What holds now: in an answer to new lives, what was granted. */
  #livesOf(address: ActorAddress): GrantedLives | undefined {
    const state = this.#o.driver.peek(address)?.state;
    if (!state) return undefined;
    const { livesVersion: version, totalDeadlineAt, runningDeadlineAt, idleDeadlineAt, idlePauseDeadlineAt } = state;
    const { runningMs, idleMs, idlePauseMs } = state.spec.lives;
    return { version, totalDeadlineAt, runningMs, runningDeadlineAt, idleMs, idleDeadlineAt, idlePauseMs, idlePauseDeadlineAt };
  }

  #meta(envelope: CommandEnvelope, commandId: string, unordered = false): CommandMeta {
    return {
      commandId,
      correlationId: envelope.correlationId,
      causationId: envelope.causationId ?? envelope.id,
      principal: envelope.principal,
      traceparent: envelope.traceparent,
      at: this.#o.clock.now(),
      sequence: unordered ? undefined : this.#delivery.sequence,
    };
  }

  #reply(envelope: CommandEnvelope, result: CommandResult, lives?: GrantedLives): void {
    if (!envelope.replyTo) return;
    const data = result.ok
      ? {
          ok: true as const,
          data: {
            decision: result.decision,
            version: result.version,
            ...(result.decision === 'ignored' ? { reason: result.reason } : {}),
            ...(lives ? { lives } : {}),
          },
        }
      : { ok: false as const, error: result.error };
    const reply: CommandReply = { commandId: envelope.id, at: this.#o.clock.now(), result: data };
    this.#o.connection.publish(envelope.replyTo, encode('reply', reply));
  }
}

const PACKED_SPANS: Readonly<Record<string, string>> = { LaunchSandboxes: 'edge.launch', ReleaseSandboxes: 'edge.release' };
const spanNameOf = ({ data }: CommandEnvelope): string => PACKED_SPANS[data.type] ?? 'edge.lifecycle';
