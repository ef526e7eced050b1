/** Takes creates back from Edges that were declared lost, as `roles/placement/lost-edges.ts` does. Takes nothing from the queue. */
import type { EdgeState } from '#bus/edge/schema.ts';
import type { Commit, CommandEnvelope } from '#bus/envelope.ts';
import { wireError } from '#bus/errors.ts';
import type { EdgeName } from '#bus/ids.ts';
import { LaunchSandboxes, ReleaseSandboxes } from '#bus/sandbox/commands.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { edgeAddress, edgeCommandSubject, laneOf, reportLaneSubject, sandboxAddress, SYSTEM_PROJECT, SYSTEM_SHARD } from '#bus/subjects.ts';
import { type BatchNews, batchReport, type LaunchItem, lostOnTheWay, NO_NEWS } from '#actors/edge/launch.ts';
import { type QueuedCommand, unpack } from '../ports/command-store.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

const EDGES = { shard: SYSTEM_SHARD, project: SYSTEM_PROJECT, kind: 'edge', home: '_' } as const;
type Batch = Pick<LaunchSandboxes, 'requestId' | 'items'> & { readonly isFollowed: boolean };

export class LostEdges {
  readonly #process: Process;
  readonly #laneCount: number;
  readonly #lost = new Set<EdgeName>();
  readonly #readTo = new Map<EdgeName, number>();
  readonly #reading = new Set<EdgeName>();

  constructor(process: Process, laneCount: number) {
    this.#process = process;
    this.#laneCount = laneCount;
  }

  start(): void {
    const { bus, link, log } = this.#process;
    bus.subscribe<{ commit: Commit }>('out.system', link, ({ commit }) =>
      commit.kind === 'edge' ? this.#learned(commit.state as unknown as EdgeState) : undefined,
    );
    const refresh = () =>
      log.lastOfEach(EDGES, (answer) => {
        if (answer.ok) for (const { commit } of answer.value) this.#learned(commit.state as unknown as EdgeState);
      });
    refresh();
    this.#process.every(HOST_LIMITS.edgesRefreshMs, 'edges', refresh);
    this.#process.every(HOST_LIMITS.lostQueueMs, 'lost queues', () => {
      for (const edge of this.#lost) if (!this.#reading.has(edge)) this.#takeBack(edge);
    });
  }

  #learned({ name, status }: EdgeState): void {
    if (status === 'lost') this.#lost.add(name);
    else if (this.#lost.delete(name)) this.#readTo.delete(name);
  }

  #takeBack(edge: EdgeName): void {
    this.#reading.add(edge);
    this.#process.queue.waiting(edgeCommandSubject(edge, '_'), this.#readTo.get(edge) ?? 0, HOST_LIMITS.lostQueueBatch, (answer) => {
      if (!answer.ok || answer.value.length === 0) return void this.#reading.delete(edge);
      // Read after its queue: an Edge that comes back from now on fences what was read.
      this.#process.log.last(edgeAddress(edge), (newest) => {
        const state = newest.ok ? (newest.value?.commit.state as EdgeState | undefined) : undefined;
        this.#next(state, edge, state?.status === 'lost' ? answer.value : []);
      });
    });
  }

  #next(lost: EdgeState | undefined, edge: EdgeName, [command, ...rest]: readonly QueuedCommand[]): void {
    if (!command || !lost) return void this.#reading.delete(edge);
    this.#refuse(lost, command, (ok) => {
      if (!ok) return void this.#reading.delete(edge);
      this.#readTo.set(edge, command.sequence);
      this.#next(lost, edge, rest);
    });
  }

  #refuse(lost: EdgeState, { data }: QueuedCommand, done: (ok: boolean) => void): void {
    const envelope = unpack(data);
    const batch = batchOf(envelope);
    if (!batch) return done(true);
    this.#sort(lost, envelope, batch, batch.items, { ...NO_NEWS, refused: [], failed: [] }, (news) => {
      if (!news) return done(false);
      if (news.refused.length + news.failed.length === 0) return done(true);
      const report = batchReport(envelope, batch.requestId, news, this.#process.clock.now());
      const subject = reportLaneSubject(laneOf(envelope.project, this.#laneCount));
      this.#process.queue.send(subject, report, ({ outcome }) => done(outcome === 'applied'));
    });
  }

  /** One that was admitted is lost with its Edge, and its create is told so. */
  #sort(
    lost: EdgeState,
    envelope: CommandEnvelope,
    batch: Batch,
    [item, ...rest]: readonly LaunchItem[],
    news: BatchNews,
    done: (news: BatchNews | null) => void,
  ): void {
    if (!item) return done(news);
    const { sandboxId, index, attempt } = item;
    this.#process.log.last(sandboxAddress(envelope.project, sandboxId), (answer) => {
      if (!answer.ok) return done(null);
      const isLost = answer.value !== null && (answer.value.commit.state as unknown as SandboxState).generation <= lost.lostGeneration;
      if (!answer.value) news.refused.push({ index, attempt, error: lostOnTheWay(lost.name) });
      else if (isLost && batch.isFollowed)
        news.failed.push({ index, attempt, error: wireError('SANDBOX_LOST', `sandbox ${sandboxId} was lost with node ${lost.name}`) });
      this.#sort(lost, envelope, batch, rest, news, done);
    });
  }
}

const batchOf = (envelope: CommandEnvelope): Batch | undefined => {
  const launch = LaunchSandboxes.safeParse(envelope.data);
  if (launch.success) return { ...launch.data, isFollowed: launch.data.follow };
  const release = ReleaseSandboxes.safeParse(envelope.data);
  return release.success ? { ...release.data, isFollowed: release.data.decision === 'start' } : undefined;
};
