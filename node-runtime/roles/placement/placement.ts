/**
 * The placement role: takes creates from their lanes, chooses nodes, records the choice, then forwards. @paper §3.2 §7
 *
 * Owns no log of its own: what it decided is in the request actor, committed *before* anything is forwarded, so any
 * other placement finishes what this one began, and a redelivery forwards the recorded choice again. The Edge has the
 * final say; its refusal comes back on the same lane and goes to another node, a bounded number of times.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { randomBytes } from 'node:crypto';
import { type CommandEnvelope, decodeCommand, encode, invalid } from '#bus/envelope.ts';
import { DsecError, toWireError } from '#bus/errors.ts';
import { messageIdOf } from '#bus/ids.ts';
import { Beat } from '#bus/edge/schema.ts';
import { RequestBusCommand, type RequestCommand, type RequestEvent, type RequestState } from '#bus/request/schema.ts';
import type { LaunchSandboxes } from '#bus/sandbox/commands.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import { BEAT_FILTER, createLaneSubject, edgeCommandSubject, requestAddress } from '#bus/subjects.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import { Fleet } from '#actors/placement/fleet.ts';
import { choose } from '#actors/placement/choose.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandConsumer, CommandQueue, Delivery } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Quota } from '#actors/ports/quota.ts';
import { requestDefinition } from '#actors/request/request.definition.ts';
import { pendingRequestEffects, type RequestEffect } from '#actors/request/request.effects.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';
import { PLACEMENT_LIMITS } from './limits.ts';
import { type Room, roomFor, settleRoom } from './spending.ts';

export type PlacementOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly queue: CommandQueue;
  readonly clock: Clock;
  readonly log: Log;
  readonly laneCount: number;
  readonly quota: Quota;
};

type RequestDriver = ActorDriver<RequestState, RequestCommand, RequestEvent, RequestEffect>;

export class Placement {
  readonly #o: PlacementOptions;
  readonly #driver: RequestDriver;
  readonly #fleet = new Fleet();
  readonly #consumers: CommandConsumer[] = [];
  readonly #recent = new Map<string, ActorAddress>();
  #beats: { unsubscribe(): void } | undefined;

  constructor(options: PlacementOptions) {
    this.#o = options;
    this.#driver = new ActorDriver<RequestState, RequestCommand, RequestEvent, RequestEffect>({
      definition: requestDefinition,
      eventLog: options.eventLog,
      clock: options.clock,
      log: options.log,
      runEffect: () => Promise.resolve(null), // forwarding is awaited below, so that the message is acknowledged after it
      deadlineCommand: () => {
        throw new Error('request actors have no deadline commands');
      },
      armDeadlines: false,
    });
  }

  async start(): Promise<void> {
    this.#beats = this.#o.connection.subscribe(BEAT_FILTER, {
      callback: (error, message) => {
        if (error) return;
        const beat = Beat.safeParse(safeJson(message.data));
        if (beat.success) this.#fleet.observe(beat.data, this.#o.clock.now());
      },
    });
    for (let lane = 0; lane < this.#o.laneCount; lane += 1) {
      const consumer = await this.#o.queue.consume(
        { name: `lane-${lane}`, filter: createLaneSubject(lane), fresh: false, maxInFlight: PLACEMENT_LIMITS.inFlight },
        (delivery) => this.#handle(delivery),
      );
      this.#consumers.push(consumer);
    }
  }

  async close(): Promise<void> {
    this.#beats?.unsubscribe();
    await Promise.all(this.#consumers.map((c) => c.close()));
    this.#driver.close();
  }

  async #handle(delivery: Delivery): Promise<void> {
    try {
      const envelope = decodeCommand(delivery.data);
      const parsed = RequestBusCommand.safeParse(envelope.data);
      if (!parsed.success) throw invalid('MALFORMED_MESSAGE', `command ${String(envelope.data.type).slice(0, 64)}`, parsed.error);
      await this.#place(delivery, envelope, parsed.data);
    } catch (thrown) {
      const error = toWireError(thrown);
      if (error.code === 'MALFORMED_MESSAGE' || error.code === 'UNSUPPORTED_VERSION') {
        this.#o.log.warn('command.discarded', { code: error.code, message: error.message, subject: delivery.subject });
        delivery.discard(error.code);
      } else {
        this.#o.log.warn('placement.retried', { code: error.code, message: error.message });
        delivery.retry(PLACEMENT_LIMITS.retryMs);
      }
    }
  }

  async #place(delivery: Delivery, envelope: CommandEnvelope, command: RequestBusCommand): Promise<void> {
    const now = this.#o.clock.now();
    const address = requestAddress(command.project, command.requestId);
    const deadlineAt = command.type === 'PlaceSandboxes' ? command.deadlineAt : (envelope.deadlineAt ?? 0);
    if (!this.#fleet.hasCandidates(now) && now < deadlineAt) {
      delivery.retry(PLACEMENT_LIMITS.noNodeRetryMs); // a restarting node beats again in a moment
      return;
    }
    const meta: CommandMeta = {
      commandId: envelope.id,
      correlationId: envelope.correlationId,
      causationId: envelope.causationId,
      principal: envelope.principal,
      traceparent: envelope.traceparent,
      at: now,
    };
    const chosen = await this.#withChoices(address, command, now);
    if (this.#mayBeOutdated(chosen, envelope, delivery.attempt, now) && now < deadlineAt) {
      delivery.retry(PLACEMENT_LIMITS.noRoomRetryMs);
      return;
    }
    // A record that is known is answered from; whether it counts is asked below.
    const isNew = command.type === 'PlaceSandboxes' && now < deadlineAt && !this.#driver.peek(address);
    const room: Room | number | null = isNew ? await roomFor(this.#o.quota, command) : null;
    if (typeof room === 'number') {
      delivery.retry(room);
      return;
    }
    const birth = command.type === 'PlaceSandboxes' && delivery.attempt === 1;
    const decided = room && chosen.type === 'PlaceSandboxes' ? { ...chosen, quota: room.quota } : chosen;
    const result = await this.#driver.submit(address, decided, meta, { birth });
    this.#remember(address);
    if (command.type === 'PlaceSandboxes') await this.#settleRoom(address, room, result, meta);
    if (!result.ok && result.error.retry !== 'never') throw new DsecError(result.error);
    if (!result.ok) this.#o.log.info('request.rejected', { actorId: command.requestId, code: result.error.code });
    const held = this.#driver.peek(address);
    if (held) await this.#forward(envelope, held.state);
    delivery.ack();
  }

  /** Nothing is forwarded that does not count: its items end as over quota. */
  async #settleRoom(address: ActorAddress, room: Room | null, result: CommandResult, meta: CommandMeta): Promise<void> {
    const held = this.#driver.peek(address);
    const over = await settleRoom(this.#o.quota, room, result, held ? { state: held.state, sequence: held.stored.sequence } : null);
    if (!over || !held) return;
    const { project, id: requestId } = held.state;
    const reported = await this.#driver.submit(
      address,
      { type: 'ReportOverQuota', project, requestId, error: over.toWire() },
      { ...meta, commandId: `${meta.commandId}:quota` },
    );
    if (!reported.ok) throw new DsecError(reported.error);
  }

  /** "No room" is said of nodes as they were after the question, not before: what the asker has just ended makes room. */
  #mayBeOutdated(command: RequestCommand, { at }: CommandEnvelope, attempt: number, now: number): boolean {
    if (command.type !== 'PlaceSandboxes' || !command.choices.includes(null) || attempt > PLACEMENT_LIMITS.noRoomRetries) return false;
    return !this.#fleet.isHeardSince(at + PLACEMENT_LIMITS.beatTransitMs, now);
  }

  async #withChoices(address: ActorAddress, command: RequestBusCommand, now: number): Promise<RequestCommand> {
    const seed = randomBytes(4).readUInt32LE(0);
    if (command.type === 'PlaceSandboxes') {
      if (this.#driver.peek(address)) return { ...command, choices: [] }; // known: the decider answers from the record
      const choices = choose({ spec: command.spec, count: command.count, fleet: this.#fleet.view(now), seed, exclude: [] });
      return { ...command, choices };
    }
    const state = this.#driver.peek(address)?.state ?? ((await this.#o.eventLog.last(address))?.commit.state as RequestState | undefined);
    const exclude = state?.items[command.index]?.refusedBy ?? [];
    const last = state?.items[command.index]?.edge;
    const choice = state
      ? (choose({ spec: state.spec, count: 1, fleet: this.#fleet.view(now), seed, exclude: last ? [...exclude, last] : exclude })[0] ?? null)
      : null;
    return { ...command, choice };
  }

  /** Sends every standing assignment to its Edge, one message per Edge. Repeats are harmless: the Edge knows its sandboxes. */
  async #forward(envelope: CommandEnvelope, state: RequestState): Promise<void> {
    await Promise.all(pendingRequestEffects(state).map((effect) => this.#forwardTo(effect, envelope, state)));
  }

  async #forwardTo({ key, edge, assignments }: RequestEffect, envelope: CommandEnvelope, state: RequestState): Promise<void> {
    this.#fleet.noteAssigned(edge, assignments.length, state.spec, this.#o.clock.now());
    const items = assignments.map(({ sandboxId, index, attempt }) => ({ sandboxId, index, attempt }));
    const data: LaunchSandboxes = { type: 'LaunchSandboxes', requestId: state.id, spec: state.spec, forkedFrom: state.forkedFrom, items };
    const id = messageIdOf(state.project, state.id, key);
    const forwarded: CommandEnvelope = {
      ...envelope,
      id,
      at: this.#o.clock.now(),
      deadlineAt: state.deadlineAt,
      causationId: envelope.id,
      replyTo: undefined,
      data,
    };
    const outcome = await this.#o.queue.enqueue(edgeCommandSubject(edge, '_'), id, encode('LaunchSandboxes', forwarded));
    if (outcome.outcome !== 'applied') throw new DsecError(outcome.error);
  }

  /** Bounds memory: request actors are needed again only by a redelivery or a refusal. */
  #remember(address: ActorAddress): void {
    this.#recent.delete(address.id);
    this.#recent.set(address.id, address);
    for (const [id, old] of this.#recent) {
      if (this.#recent.size <= PLACEMENT_LIMITS.actorsMax) return;
      if (this.#driver.evict(old)) this.#recent.delete(id);
    }
  }
}

const safeJson = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
};
