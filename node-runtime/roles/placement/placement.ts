/**
 * The placement role: takes creates from their lanes, chooses nodes, records the choice, then forwards. @paper §3.2 §7
 *
 * Owns no log of its own: what it decided is in the request actor, committed *before* anything is forwarded, so any
 * other placement finishes what this one began, and a redelivery forwards the recorded choice again. The Edge has the
 * final say; its refusal comes back as a report and goes to another node, a bounded number of times.
 *
 * New creates wait for their project's turn (`actors/placement/fair-queue.ts`); reports about begun ones have a queue of their own
 * and do not wait behind them. A group's command stays in the queue until nothing more will come of it, and is looked at every
 * round: it is the group's durable timer.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { randomBytes } from 'node:crypto';
import type { CommandReply } from '#bus/api/schema.ts';
import { type CommandEnvelope, decodeCommand, encode, invalid } from '#bus/envelope.ts';
import { DsecError, toWireError } from '#bus/errors.ts';
import { Beat } from '#bus/edge/schema.ts';
import { type EdgeName, parseSandboxId } from '#bus/ids.ts';
import { safeParse } from '#bus/proof.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { type ReportBatch, RequestBusCommand, type RequestCommand, type RequestEvent, type RequestState } from '#bus/request/schema.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import { BEAT_FILTER, createLaneSubject, reportLaneSubject, requestAddress } from '#bus/subjects.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import { FairQueue } from '#actors/placement/fair-queue.ts';
import { type DecisionMark, Fleet } from '#actors/placement/fleet.ts';
import { choose } from '#actors/placement/choose.ts';
import { chooseNear } from '#actors/placement/choose-near.ts';
import { FAIR_LIMITS } from '#actors/placement/limits.ts';
import { RecentRequests } from '#actors/placement/recent.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandConsumer, CommandQueue, Delivery } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Quota } from '#actors/ports/quota.ts';
import { requestDefinition } from '#actors/request/request.definition.ts';
import type { RequestEffect } from '#actors/request/request.effects.ts';
import { isGroupOver } from '#actors/request/request.group.ts';
import { SpanKind } from '@opentelemetry/api';
import { traced } from '../../tracing/spans.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';
import { JobLooks } from '../job-looks.ts';
import { LaneTurns } from './lane-turns.ts';
import { Presence } from '../presence.ts';
import { PLACEMENT_LIMITS } from './limits.ts';
import { Messages } from './messages.ts';
import { type Room, roomFor, settleRoom } from './spending.ts';

export type PlacementOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly queue: CommandQueue;
  readonly clock: Clock;
  readonly log: Log;
  readonly laneCount: number;
  readonly shardCount: number;
  readonly quota: Quota;
};

type RequestDriver = ActorDriver<RequestState, RequestCommand, RequestEvent, RequestEffect>;
type BusCommand<T extends RequestBusCommand['type']> = Extract<RequestBusCommand, { type: T }>;
type Work = { readonly delivery: Delivery; readonly envelope: CommandEnvelope; readonly address: ActorAddress; readonly now: CommandMeta['at'] };

export class Placement {
  readonly #o: PlacementOptions;
  readonly #driver: RequestDriver;
  readonly #fleet = new Fleet();
  readonly #messages: Messages;
  readonly #jobs: JobLooks;
  readonly #turns: LaneTurns;
  readonly #consumers: CommandConsumer[] = [];
  readonly #recent = new RecentRequests();
  #beats: { unsubscribe(): void } | undefined;
  #presence: Presence | undefined;
  #hearsAllFromMs = 0;

  constructor(options: PlacementOptions) {
    this.#o = options;
    this.#messages = new Messages({ ...options, fleet: this.#fleet });
    this.#jobs = new JobLooks(options.eventLog);
    this.#turns = new LaneTurns(() => new FairQueue(FAIR_LIMITS));
    this.#driver = new ActorDriver<RequestState, RequestCommand, RequestEvent, RequestEffect>({
      definition: requestDefinition,
      eventLog: options.eventLog,
      clock: options.clock,
      log: options.log,
      runEffect: () => Promise.resolve(null), // messages are awaited below, so that their cause is acknowledged after them
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
        const beat = safeParse(Beat, jsonOrUndefined(message.data));
        if (beat.success) this.#fleet.observe(beat.data, this.#o.clock.now());
      },
    });
    this.#presence = new Presence({
      connection: this.#o.connection,
      clock: this.#o.clock,
      role: 'placement',
      instance: `p-${randomBytes(8).toString('hex')}`,
      onChange: () => this.#counted(),
    });
    this.#hearsAllFromMs = this.#o.clock.monotonicMs() + PLACEMENT_LIMITS.firstHearingMs;
    for (let lane = 0; lane < this.#o.laneCount; lane += 1) {
      await this.#consume(`report-${lane}`, reportLaneSubject(lane), PLACEMENT_LIMITS.reportsInFlight, (delivery) => this.#handle(delivery, undefined));
      await this.#consume(`lane-${lane}`, createLaneSubject(lane), PLACEMENT_LIMITS.laneInFlight, (delivery) => this.#handle(delivery, lane));
    }
  }

  #counted(): void {
    this.#fleet.placements = this.#presence?.count ?? 1;
  }

  async close(): Promise<void> {
    this.#beats?.unsubscribe();
    this.#presence?.close();
    this.#turns.close();
    await Promise.all(this.#consumers.map((c) => c.close()));
    this.#driver.close();
  }

  async #consume(name: string, filter: string, maxInFlight: number, handler: (delivery: Delivery) => Promise<void>): Promise<void> {
    this.#consumers.push(await this.#o.queue.consume({ name, filter, fresh: false, maxInFlight }, handler));
  }

  /** `lane` of a new create, which waits for its turn; undefined for a report. */
  async #handle(delivery: Delivery, lane: number | undefined): Promise<void> {
    try {
      const envelope = decodeCommand(delivery.data);
      const parsed = safeParse(RequestBusCommand, envelope.data);
      if (!parsed.success) throw invalid('MALFORMED_MESSAGE', `command ${String(envelope.data.type).slice(0, 64)}`, parsed.error);
      if (lane === undefined) return await this.#perform(delivery, envelope, parsed.data);
      await this.#turns.inTurn(lane, parsed.data.project, delivery, () => this.#perform(delivery, envelope, parsed.data));
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

  /** The apiserver that stored it counts what waits, and hears of turns that led to a commit on the log: the others are said. */
  #giveBack({ delivery, envelope }: Work, afterMs: number): void {
    this.#sayTurn(envelope);
    delivery.retry(afterMs);
  }

  /** Best effort: the apiserver forgets in time what it does not hear of. */
  #sayTurn({ id: commandId, replyTo }: CommandEnvelope): void {
    if (!replyTo || this.#o.connection.isClosed()) return;
    const reply: CommandReply = { commandId, at: this.#o.clock.now(), result: { ok: true, data: { decision: 'pending' } } };
    this.#o.connection.publish(replyTo, encode('turn', reply));
  }

  /** What is decided and sent below it names this span as its cause. */
  #perform(delivery: Delivery, envelope: CommandEnvelope, command: RequestBusCommand): Promise<void> {
    const span = { parent: envelope.traceparent, kind: SpanKind.CONSUMER, attributes: { 'dsec.request': command.requestId } };
    return traced(SPANS[command.type], span, (traceparent) => this.#performTraced(delivery, { ...envelope, traceparent }, command));
  }

  async #performTraced(delivery: Delivery, envelope: CommandEnvelope, command: RequestBusCommand): Promise<void> {
    const work: Work = { delivery, envelope, address: requestAddress(command.project, command.requestId), now: this.#o.clock.now() };
    switch (command.type) {
      case 'PlaceSandboxes':
        return this.#place(work, command);
      case 'PlaceGroup':
        return this.#placeGroup(work, command);
      case 'ReportBatch':
        return this.#report(work, command);
      case 'ReportChunk':
      case 'DecideChunk':
        await this.#decideAndSend(work, command);
        delivery.ack();
    }
  }

  async #place(work: Work, command: BusCommand<'PlaceSandboxes'>): Promise<void> {
    const { delivery, address, now, envelope } = work;
    if (!this.#fleet.hasCandidates(now) && now < command.deadlineAt) {
      this.#giveBack(work, PLACEMENT_LIMITS.noNodeRetryMs); // a restarting node beats again in a moment
      return;
    }
    const known = this.#driver.peek(address) !== undefined; // the decider answers from the record
    const input = { ...command, fleet: this.#fleet.view(now), placements: this.#fleet.placements, seed: seed(), exclude: [] };
    const near = command.forkedFrom ? parseSandboxId(command.forkedFrom).edge : null;
    const choices = known ? [] : near ? chooseNear(input, near) : choose(input);
    if (now < command.deadlineAt && this.#mayBeOutdated(choices, envelope, delivery.attempt, now)) {
      this.#giveBack(work, PLACEMENT_LIMITS.noRoomRetryMs);
      return;
    }
    const noted = this.#note(choices, command, now); // before anything is awaited: the next choice is made beside it
    try {
      const room = known || now >= command.deadlineAt ? null : await roomFor(this.#o.quota, this.#jobs, command);
      if (typeof room === 'number') {
        this.#giveBack(work, room);
        return;
      }
      const result = await this.#submit(work, { ...command, choices, ...(room ? { quota: room.quota } : {}) }, delivery.attempt === 1);
      await this.#settleRoom(work, room, result);
      const held = result.ok ? this.#driver.peek(address) : undefined; // what it was refused beside is another command's to send
      const standing = new Set(held?.state.items.map(({ edge }) => edge));
      const kept = new Map([...noted].filter(([edge]) => standing.has(edge)));
      if (held) await this.#messages.send(envelope, held.state, { noted: kept });
      for (const edge of kept.keys()) noted.delete(edge);
      delivery.ack();
    } finally {
      for (const mark of noted.values()) mark.cancel();
    }
  }

  #note(choices: readonly (EdgeName | null)[], { spec, project }: BusCommand<'PlaceSandboxes'>, now: CommandMeta['at']): Map<EdgeName, DecisionMark> {
    const counts = new Map<EdgeName, number>();
    for (const edge of choices) if (edge) counts.set(edge, (counts.get(edge) ?? 0) + 1);
    return new Map([...counts].map(([edge, count]) => [edge, this.#fleet.noteAssigned(edge, count, spec, project, now)]));
  }

  /** Nothing is forwarded that does not count: its items end as over quota. */
  async #settleRoom(work: Work, room: Room | null, result: CommandResult): Promise<void> {
    const held = this.#driver.peek(work.address);
    const over = await settleRoom(this.#o.quota, room, result, held ? { state: held.state, sequence: held.stored.sequence } : null);
    if (!over || !held) return;
    const { project, id: requestId } = held.state;
    const envelope = { ...work.envelope, id: `${work.envelope.id}:quota` };
    await this.#submit({ ...work, envelope }, { type: 'ReportOverQuota', project, requestId, error: over.toWire() });
  }

  async #placeGroup(work: Work, command: BusCommand<'PlaceGroup'>): Promise<void> {
    await this.#decideAndSend(work, command, work.delivery.attempt === 1);
    const state = this.#driver.peek(work.address)?.state;
    if (!state || isGroupOver(state, work.now)) work.delivery.ack();
    else work.delivery.retry(PLACEMENT_LIMITS.groupRoundMs);
  }

  async #report(work: Work, report: ReportBatch): Promise<void> {
    // What is in memory may be older than the log: another placement may have moved the item, and nodes that refused are asked no more.
    const held = report.refused.length > 0 ? undefined : this.#driver.peek(work.address)?.state;
    const state = held ?? (await this.#load(work.address));
    for (const { index, attempt, error } of [...report.refused, ...report.failed]) {
      const item = state?.items[index];
      if (item?.edge && item.attempt === attempt) this.#fleet.noteFailed(item.edge, error, work.now);
    }
    for (const { error } of report.refused) this.#o.log.debug('placement.refused', { actorId: report.requestId, code: error.code });
    const choices = report.refused.map(({ index }) => this.#otherNode(state, index, work.now));
    await this.#decideAndSend(work, { ...report, choices });
    work.delivery.ack();
  }

  #otherNode(state: RequestState | undefined, index: number, now: number): EdgeName | null {
    const item = state?.items[index];
    if (!state || !item) return null;
    const exclude = item.edge ? [...item.refusedBy, item.edge] : item.refusedBy;
    return (
      choose({
        project: state.project,
        spec: state.spec,
        count: 1,
        fleet: this.#fleet.view(now),
        placements: this.#fleet.placements,
        seed: seed(),
        exclude,
      })[0] ?? null
    );
  }

  async #load(address: ActorAddress): Promise<RequestState | undefined> {
    const stored = await this.#o.eventLog.last(address);
    if (stored) this.#driver.adopt(stored);
    return stored ? requestDefinition.parseState(stored.commit.state, stored.commit.schema) : undefined;
  }

  async #decideAndSend(work: Work, command: RequestCommand, birth = false): Promise<void> {
    const before = this.#driver.peek(work.address)?.state ?? null;
    const result = await this.#submit(work, command, birth);
    const held = result.ok ? this.#driver.peek(work.address) : undefined;
    if (held) await this.#messages.send(work.envelope, held.state, { before: hasJustDecided(work.delivery, result) ? before : null });
  }

  /** Throws what may still change; a rejection for good is an answer, and everybody can read why. */
  async #submit({ envelope, address, now }: Work, command: RequestCommand, birth = false): Promise<CommandResult> {
    const { id: commandId, correlationId, causationId, principal, traceparent } = envelope;
    const meta: CommandMeta = { commandId, correlationId, causationId, principal, traceparent, at: now };
    const mayBeOld = this.#driver.peek(address) !== undefined;
    let result = await this.#driver.submit(address, command, meta, { birth });
    // "Nothing new" may only mean that another placement has gone on since this one loaded the request.
    if (result.ok && result.decision === 'ignored' && mayBeOld && this.#driver.evict(address)) result = await this.#driver.submit(address, command, meta);
    this.#remember(address);
    if (!result.ok || result.decision === 'ignored') this.#sayTurn(envelope);
    if (result.ok) return result;
    if (result.error.retry !== 'never') throw new DsecError(result.error);
    this.#o.log.info('request.rejected', { actorId: address.id, code: result.error.code });
    return result;
  }

  /** "No room" is said of nodes as they were after the question, not before: what the asker has just ended makes room. */
  #mayBeOutdated(choices: readonly (EdgeName | null)[], { at }: CommandEnvelope, attempt: number, now: number): boolean {
    if (!choices.includes(null) || attempt > PLACEMENT_LIMITS.noRoomRetries) return false;
    if (this.#o.clock.monotonicMs() < this.#hearsAllFromMs) return true; // it has just started, and may know a part of the fleet
    return !this.#fleet.isHeardSince(at + PLACEMENT_LIMITS.beatTransitMs, now);
  }

  /** Bounds memory: request actors are needed again only by a redelivery or a report. */
  #remember(address: ActorAddress): void {
    this.#recent.remember(address, this.#driver.peek(address)?.state.items.length ?? 0);
    for (const id of this.#recent.letGo((old) => this.#driver.evict(old))) this.#messages.forget(id as RequestState['id']);
  }
}

/** Otherwise somebody may have decided it before and died before all was sent. */
const hasJustDecided = ({ attempt }: Delivery, result: CommandResult): boolean => attempt === 1 && result.ok && result.decision === 'accepted';

const SPANS: Readonly<Record<RequestBusCommand['type'], string>> = {
  PlaceSandboxes: 'placement.place',
  PlaceGroup: 'placement.group',
  ReportBatch: 'placement.report',
  ReportChunk: 'placement.report',
  DecideChunk: 'placement.decide',
};

const seed = (): number => randomBytes(4).readUInt32LE(0);
