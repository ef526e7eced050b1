/**
 * One placement, as `node-runtime/roles/placement` is: choose on a fleet view folded from beats, commit the choice, then send what
 * the request calls for, then acknowledge. New creates wait for their project's turn; a group's command stays in the queue and is
 * looked at every round. The policy and the overlay are parts, so that others can be compared with ours.
 */
import type { Beat } from '#bus/edge/schema.ts';
import type { CommandEnvelope } from '#bus/envelope.ts';
import { toWireError, type WireError } from '#bus/errors.ts';
import { quotaHolderName } from '#bus/iam/quota-lending.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { type ReportBatch, RequestBusCommand, type RequestCommand, type RequestEvent, type RequestState } from '#bus/request/schema.ts';
import { type ActorAddress, createLaneSubject, reportLaneSubject, requestAddress } from '#bus/subjects.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import { FairQueue } from '#actors/placement/fair-queue.ts';
import { type DecisionMark, Fleet } from '#actors/placement/fleet.ts';
import { FAIR_LIMITS } from '#actors/placement/limits.ts';
import { RecentRequests } from '#actors/placement/recent.ts';
import type { RequestEffect } from '#actors/request/request.effects.ts';
import { isGroupOver } from '#actors/request/request.group.ts';
import type { Answer } from '../ports/event-log.ts';
import { unpack } from '../ports/command-store.ts';
import type { SimDelivery } from '../ports/queue-consumer.ts';
import { ActorRunner } from './actor-runner.ts';
import { type Flow, start, until } from './flow.ts';
import { lookAtJob } from './job-looks.ts';
import { HOST_LIMITS } from './limits.ts';
import { LostEdges } from './lost-edges.ts';
import { SimMessages } from './messages.ts';
import type { Observer } from './observer.ts';
import type { Parts } from './parts.ts';
import { SimPresence } from './presence.ts';
import type { Process } from './process.ts';
import { readAs } from './read-as.ts';
import { type Room, SimQuotaHolder } from './quota-holder.ts';

export type PlacementOptions = {
  readonly process: Process;
  readonly laneCount: number;
  readonly shardCount: number;
  readonly parts: Parts;
  readonly observer: Observer;
  /** How old what it knows of a node is, beyond the way of the beat. */
  readonly viewAgeMs: number;
  /** Whether projects have quotas at all: otherwise there is no IAM to ask. */
  readonly hasQuotas: boolean;
  /** The how-manieth process of its place this is. */
  readonly life: number;
  readonly onOver: (why: WireError) => void;
};

type BusCommand<T extends RequestBusCommand['type']> = Extract<RequestBusCommand, { type: T }>;
type Work = { readonly delivery: SimDelivery; readonly envelope: CommandEnvelope; readonly address: ActorAddress; readonly now: CommandMeta['at'] };
/** `ok: false`: something may still change; its cause is given back. */
type Done = (ok: boolean) => void;
type Placing = BusCommand<'PlaceSandboxes'>;

const NO_REFUSAL: Answer<WireError | null> = { ok: true, value: null };

/** False for what may still change; a rejection for good is an answer. */
const isSettled = (result: CommandResult): boolean => result.ok || result.error.retry === 'never';

/** Otherwise somebody may have decided it before and died before all was sent. */
const hasJustDecided = ({ attempt }: SimDelivery, result: CommandResult): boolean => attempt === 1 && result.ok && result.decision === 'accepted';

export class SimPlacement {
  readonly #o: PlacementOptions;
  readonly #runner: ActorRunner<RequestState, RequestCommand, RequestEvent, RequestEffect>;
  readonly #fleet = new Fleet();
  readonly #turns = new Map<number, FairQueue<() => void>>();
  readonly #recent = new RecentRequests();
  readonly #messages: SimMessages;
  readonly #quota: SimQuotaHolder | null;

  constructor(options: PlacementOptions) {
    this.#o = options;
    this.#messages = new SimMessages({ ...options, fleet: this.#fleet });
    this.#quota =
      options.hasQuotas && options.parts.asksForRoom
        ? new SimQuotaHolder(options.process, options.parts.book(), quotaHolderName(options.process.name, options.life))
        : null;
    this.#runner = new ActorRunner({
      process: options.process,
      definition: options.parts.request,
      host: options.parts.host(options.parts.request),
      onReply: (address, result) => options.observer.replied(address, result),
    });
  }

  start(): void {
    const { process, laneCount, viewAgeMs } = this.#o;
    const presence = new SimPresence(process, 'placement', () => {
      this.#fleet.placements = presence.count;
    });
    const hear = (beat: Beat) => this.#fleet.observe(beat, process.clock.now());
    process.bus.subscribe<Beat>('beat', process.link, (beat) => (viewAgeMs === 0 ? hear(beat) : void process.after(viewAgeMs, 'old beat', () => hear(beat))));
    for (let lane = 0; lane < laneCount; lane += 1) {
      this.#consume(`report-${lane}`, reportLaneSubject(lane), HOST_LIMITS.reportsInFlight, (delivery) => this.#handle(delivery, null));
      this.#consume(`lane-${lane}`, createLaneSubject(lane), HOST_LIMITS.laneInFlight, (delivery) => this.#handle(delivery, lane));
    }
    if (this.#o.life > 1) this.#quota?.inherit();
    new LostEdges(process, laneCount).start();
  }

  kill(): void {
    this.#o.process.kill();
    this.#runner.close();
  }

  #consume(name: string, filter: string, maxInFlight: number, handler: (delivery: SimDelivery) => void): void {
    this.#o.process.queue.consume({ name, filter, fresh: false, maxInFlight }, handler, (answer) => (answer.ok ? undefined : this.#over(answer.error)));
  }

  #over(why: WireError): void {
    if (!this.#o.process.alive) return;
    this.kill();
    this.#o.onOver(why);
  }

  #handle(delivery: SimDelivery, lane: number | null): void {
    try {
      const envelope = unpack(delivery.data);
      const command = readAs(RequestBusCommand, envelope.data);
      if (lane === null) this.#perform(delivery, envelope, command, () => {});
      else this.#inTurn(lane, command.project, (over) => this.#perform(delivery, envelope, command, over));
    } catch (thrown) {
      delivery.discard(toWireError(thrown).code);
    }
  }

  #inTurn(lane: number, project: ProjectName, work: (over: () => void) => void): void {
    const queue = this.#turns.get(lane) ?? new FairQueue<() => void>(FAIR_LIMITS);
    this.#turns.set(lane, queue);
    const startNext = () => {
      for (let next = queue.take(); next; next = queue.take()) next.work();
    };
    queue.push(project, () =>
      work(() => {
        queue.done(project);
        startNext();
      }),
    );
    startNext();
  }

  #perform(delivery: SimDelivery, envelope: CommandEnvelope, command: RequestBusCommand, over: () => void): void {
    const work: Work = { delivery, envelope, address: requestAddress(command.project, command.requestId), now: this.#o.process.clock.now() };
    const done: Done = (ok) => {
      if (!ok) delivery.retry(HOST_LIMITS.placementRetryMs);
      over();
    };
    const acknowledged: Done = (ok) => {
      if (ok) delivery.ack();
      done(ok);
    };
    switch (command.type) {
      case 'PlaceSandboxes':
        return this.#place(work, command, acknowledged, over);
      case 'PlaceGroup':
        return this.#placeGroup(work, command, done);
      case 'ReportBatch':
        return this.#report(work, command, acknowledged);
      default:
        return this.#decideAndSend(work, command, false, acknowledged);
    }
  }

  #place(work: Work, command: BusCommand<'PlaceSandboxes'>, done: Done, over: () => void): void {
    const { delivery, address, now, envelope } = work;
    const later = (delayMs: number) => {
      delivery.retry(delayMs);
      over();
    };
    if (!this.#fleet.hasCandidates(now) && now < command.deadlineAt) return later(HOST_LIMITS.noNodeRetryMs);
    const known = this.#runner.peek(address) !== undefined; // the decider answers from the record
    const seed = this.#o.process.random.next();
    const choices = known ? [] : this.#o.parts.choose({ ...command, fleet: this.#fleet.view(now), placements: this.#fleet.placements, seed, exclude: [] });
    if (now < command.deadlineAt && this.#mayBeOutdated(choices, envelope, delivery.attempt, now)) return later(HOST_LIMITS.noRoomRetryMs);
    const noted = this.#note(choices, command, now); // before anything is waited for: the next choice is made beside it
    start(this.#placeOn(work, { ...command, choices }, known, noted), (outcome) => {
      for (const mark of noted.values()) mark.cancel();
      if (typeof outcome === 'number') later(outcome);
      else done(outcome);
    });
  }

  /** A number: again after so many milliseconds. What is left in `noted` did not come to be. */
  *#placeOn(
    work: Work,
    command: Placing & { readonly choices: (EdgeName | null)[] },
    known: boolean,
    noted: Map<EdgeName, DecisionMark>,
  ): Flow<boolean | number> {
    const { address, now, envelope, delivery } = work;
    const isNew = !known && now < command.deadlineAt;
    const job = isNew ? yield* until<Answer<WireError | null>>((done) => lookAtJob(this.#o.process, command.project, command.spec, done)) : NO_REFUSAL;
    if (!job.ok) return false;
    const refused: Room | null = job.value && { quota: { lease: null, count: 0, error: job.value }, taken: null, each: {} };
    const room = refused ?? (this.#quota && isNew ? yield* this.#quota.roomFor(command) : null);
    if (typeof room === 'number') return room;
    const submitted = { ...command, ...(room ? { quota: room.quota } : {}) };
    const result = yield* until<CommandResult>((decided) => this.#submit(work, submitted, delivery.attempt === 1, decided));
    if (!(yield* this.#settleRoom(work, room, result)) || !isSettled(result)) return false;
    const held = result.ok ? this.#runner.peek(address) : undefined; // what it was refused beside is another command's to send
    if (!held) return true;
    const standing = new Set(held.state.items.map(({ edge }) => edge));
    const kept = new Map([...noted].filter(([edge]) => standing.has(edge)));
    const isSent = yield* until<boolean>((sent) => this.#messages.send(envelope, held.state, sent, { noted: kept }));
    if (isSent) for (const edge of kept.keys()) noted.delete(edge);
    return isSent;
  }

  #note(choices: readonly (EdgeName | null)[], { spec, project }: Placing, now: CommandMeta['at']): Map<EdgeName, DecisionMark> {
    const counts = new Map<EdgeName, number>();
    if (this.#o.parts.overlay) for (const edge of choices) if (edge) counts.set(edge, (counts.get(edge) ?? 0) + 1);
    return new Map([...counts].map(([edge, count]) => [edge, this.#fleet.noteAssigned(edge, count, spec, project, now)]));
  }

  /** Nothing is forwarded that does not count: its items end as over quota. False when that is not known yet. */
  *#settleRoom(work: Work, room: Room | null, result: CommandResult): Flow<boolean> {
    const held = this.#runner.peek(work.address);
    if (!this.#quota) return true;
    const over = yield* this.#quota.settle(room, result, held ? { state: held.state, sequence: held.stored.sequence } : null);
    if (!over || !held) return true;
    if (over.code === 'IAM_UNAVAILABLE') return false;
    const { project, id: requestId } = held.state;
    const envelope = { ...work.envelope, id: `${work.envelope.id}:quota` };
    const told = yield* until<CommandResult>((decided) =>
      this.#submit({ ...work, envelope }, { type: 'ReportOverQuota', project, requestId, error: over }, false, decided),
    );
    return isSettled(told);
  }

  #placeGroup(work: Work, command: BusCommand<'PlaceGroup'>, done: Done): void {
    this.#decideAndSend(work, command, work.delivery.attempt === 1, (ok) => {
      if (!ok) return done(false);
      const state = this.#runner.peek(work.address)?.state;
      if (!state || isGroupOver(state, work.now)) work.delivery.ack();
      else work.delivery.retry(HOST_LIMITS.groupRoundMs);
      done(true);
    });
  }

  #report(work: Work, report: ReportBatch, done: Done): void {
    const decide = (state: RequestState | undefined) => {
      for (const { index, attempt, error } of [...report.refused, ...report.failed]) {
        const item = state?.items[index];
        if (item?.edge && item.attempt === attempt) this.#fleet.noteFailed(item.edge, error, work.now);
      }
      const choices = report.refused.map(({ index }) => this.#otherNode(state, index, work.now));
      this.#decideAndSend(work, { ...report, choices }, false, done);
    };
    const held = report.refused.length > 0 ? undefined : this.#runner.peek(work.address)?.state;
    if (held) return decide(held);
    // What is in memory may be older than the log: another placement may have moved the item.
    this.#o.process.log.last(work.address, (answer) => {
      if (!answer.ok) return done(false);
      if (answer.value) this.#runner.adopt(answer.value);
      decide(answer.value?.commit.state as RequestState | undefined);
    });
  }

  #otherNode(state: RequestState | undefined, index: number, now: number): EdgeName | null {
    const item = state?.items[index];
    if (!state || !item) return null;
    const exclude = item.edge ? [...item.refusedBy, item.edge] : item.refusedBy;
    const seed = this.#o.process.random.next();
    return (
      this.#o.parts.choose({
        project: state.project,
        spec: state.spec,
        count: 1,
        fleet: this.#fleet.view(now),
        placements: this.#fleet.placements,
        seed,
        exclude,
      })[0] ?? null
    );
  }

  #decideAndSend(work: Work, command: RequestCommand, birth: boolean, done: Done): void {
    const before = this.#runner.peek(work.address)?.state ?? null;
    this.#submit(work, command, birth, (result) => {
      const held = result.ok ? this.#runner.peek(work.address) : undefined;
      if (!held) return done(isSettled(result));
      this.#messages.send(work.envelope, held.state, done, { before: hasJustDecided(work.delivery, result) ? before : null });
    });
  }

  #submit({ envelope, address, now }: Work, command: RequestCommand, birth: boolean, done: (result: CommandResult) => void): void {
    const { id: commandId, correlationId, causationId, principal, traceparent } = envelope;
    const meta: CommandMeta = { commandId, correlationId, causationId, principal, traceparent, at: now };
    const mayBeOld = this.#runner.peek(address) !== undefined;
    const settle = (result: CommandResult) => {
      this.#remember(address);
      done(result);
    };
    this.#runner.submit(
      address,
      command,
      meta,
      (result) => {
        // "Nothing new" may only mean that another placement has gone on since this one loaded the request.
        if (result.ok && result.decision === 'ignored' && mayBeOld && this.#runner.evict(address)) this.#runner.submit(address, command, meta, settle);
        else settle(result);
      },
      birth,
    );
  }

  /** "No room" is said of nodes as they were after the question, not before. */
  #mayBeOutdated(choices: readonly (EdgeName | null)[], { at }: CommandEnvelope, attempt: number, now: number): boolean {
    if (!choices.includes(null) || attempt > HOST_LIMITS.noRoomRetries) return false;
    return !this.#fleet.isHeardSince(at + HOST_LIMITS.beatTransitMs, now);
  }

  #remember(address: ActorAddress): void {
    this.#recent.remember(address, this.#runner.peek(address)?.state.items.length ?? 0);
    for (const id of this.#recent.letGo((old) => this.#runner.evict(old))) this.#messages.forget(id);
  }
}
