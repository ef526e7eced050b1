/**
 * Takes creates back from Edges that were declared lost: what waits in a lost Edge's queue and was never admitted goes back on its
 * lane as refused, and its request actor chooses another node. @paper §3.2
 *
 * Takes nothing from the queue: the Edge that comes back finds the same messages below its `fencedSequence`, and refuses them
 * too. Both refusals carry one id and name one attempt, so the second changes nothing. Any number of placements may do this.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { EdgeState } from '#bus/edge/schema.ts';
import { type CommandEnvelope, decodeCommand, encode } from '#bus/envelope.ts';
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import type { EdgeName, RequestId } from '#bus/ids.ts';
import { LaunchSandboxes, ReleaseSandboxes } from '#bus/sandbox/commands.ts';
import { readState } from '#bus/records.ts';
import { edgeAddress, edgeCommandSubject, laneOf, reportLaneSubject, sandboxAddress } from '#bus/subjects.ts';
import { type BatchNews, batchReport, lostOnTheWay, NO_NEWS } from '#actors/edge/launch.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandQueue, WaitingCommand } from '#actors/ports/command-queue.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Log } from '../../log/log.ts';
import { EdgeStates } from '../edge-states.ts';
import { PLACEMENT_LIMITS } from './limits.ts';

export type LostEdgesOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly queue: CommandQueue;
  readonly clock: Clock;
  readonly log: Log;
  readonly laneCount: number;
};

export class LostEdges {
  readonly #o: LostEdgesOptions;
  /** By lost Edge: how far its queue has been read. */
  readonly #readTo = new Map<EdgeName, number>();
  #edges: EdgeStates | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running = false;

  private constructor(options: LostEdgesOptions) {
    this.#o = options;
  }

  static async start(options: LostEdgesOptions): Promise<LostEdges> {
    const lost = new LostEdges(options);
    lost.#edges = await EdgeStates.open({ ...options, onChange: (state) => lost.#learned(state) });
    lost.#timer = setInterval(() => void lost.#takeBack(), PLACEMENT_LIMITS.lostQueueMs);
    return lost;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#edges?.close();
  }

  #learned(state: EdgeState): void {
    if (state.status === 'lost') void this.#takeBack();
    else this.#readTo.delete(state.name);
  }

  /** Again and again while an Edge is away: a placement that was slow may still send it what it had chosen before. */
  async #takeBack(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    try {
      for (const { name, status } of this.#edges?.all() ?? []) if (status === 'lost') await this.#takeBackFrom(name);
    } catch (thrown) {
      this.#o.log.warn('lost.not_taken_back', { message: (thrown as Error).message });
    } finally {
      this.#running = false;
    }
  }

  async #takeBackFrom(edge: EdgeName): Promise<void> {
    for (;;) {
      const waiting = await this.#o.queue.waiting(edgeCommandSubject(edge, '_'), this.#readTo.get(edge) ?? 0, PLACEMENT_LIMITS.lostQueueBatch);
      const lost = waiting.length > 0 ? await this.#stillLost(edge) : undefined;
      if (!lost) return;
      for (const command of waiting) {
        await this.#refuse(lost, command);
        this.#readTo.set(edge, command.sequence);
      }
      if (waiting.length < PLACEMENT_LIMITS.lostQueueBatch) return;
    }
  }

  /**
   * Read after its queue: an Edge that comes back from now on fences what was read, and one that has come back meanwhile takes it. What
   * is known from before may be old, and then the same create would be refused here and admitted there.
   */
  async #stillLost(edge: EdgeName): Promise<EdgeState | undefined> {
    const stored = await this.#o.eventLog.last(edgeAddress(edge));
    const state = stored && readState('edge', stored.commit.state, stored.commit.schema);
    return state?.status === 'lost' ? state : undefined;
  }

  async #refuse({ name: edge, lostGeneration }: EdgeState, { data, subject }: WaitingCommand): Promise<void> {
    const command = readBatch(data);
    if (!command) return this.#o.log.warn('lost.unreadable', { subject });
    const { envelope, batch } = command;
    const refused: BatchNews['refused'] = [];
    const failed: BatchNews['failed'] = [];
    for (const { sandboxId, index, attempt } of batch.items) {
      const stored = await this.#o.eventLog.last(sandboxAddress(envelope.project, sandboxId));
      // One that was admitted is lost with its Edge, and its create is told so.
      const isLost = stored !== null && readState('sandbox', stored.commit.state, stored.commit.schema).generation <= lostGeneration;
      if (!stored) refused.push({ index, attempt, error: lostOnTheWay(edge) });
      else if (isLost && batch.isFollowed) failed.push({ index, attempt, error: lostWith(edge, sandboxId) });
    }
    if (refused.length + failed.length > 0) await this.#sendBack(edge, envelope, batch.requestId, { ...NO_NEWS, refused, failed });
  }

  async #sendBack(edge: EdgeName, envelope: CommandEnvelope, requestId: RequestId, news: BatchNews): Promise<void> {
    const report = batchReport(envelope, requestId, news, this.#o.clock.now());
    const outcome = await this.#o.queue.enqueue(reportLaneSubject(laneOf(envelope.project, this.#o.laneCount)), report.id, encode('report', report));
    if (outcome.outcome !== 'applied') throw new DsecError(outcome.error);
    this.#o.log.info('creates.taken_back', { actorId: requestId, edge, refused: news.refused.length, lost: news.failed.length });
  }
}

/** What waits there: creates, and what a group has decided about those it holds. `isFollowed`: its request hears of every item. */
type Batch = Pick<LaunchSandboxes, 'requestId' | 'items'> & { readonly isFollowed: boolean };

const lostWith = (edge: EdgeName, sandboxId: string): WireError =>
  wireError('SANDBOX_LOST', `sandbox ${sandboxId} was lost with node ${edge} before it was said to run; create another`, { details: { edge, sandboxId } });

const readBatch = (data: Uint8Array): { readonly envelope: CommandEnvelope; readonly batch: Batch } | undefined => {
  try {
    const envelope = decodeCommand(data);
    const launch = LaunchSandboxes.safeParse(envelope.data);
    if (launch.success) return { envelope, batch: { ...launch.data, isFollowed: launch.data.follow } };
    const release = ReleaseSandboxes.safeParse(envelope.data);
    return release.success ? { envelope, batch: { ...release.data, isFollowed: release.data.decision === 'start' } } : undefined;
  } catch {
    return undefined; // the Edge discards it when it is back
  }
};
