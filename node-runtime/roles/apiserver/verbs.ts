/** What each verb does. Reads come from the log or the projection, writes are commands on the queue. */
import type { ApiParsed, ApiResponse, SandboxView } from '#bus/api/schema.ts';
import { DsecError } from '#bus/errors.ts';
import { JobId, parseSandboxId, type ProjectName, type SandboxId, type Shard } from '#bus/ids.ts';
import type { RequestState } from '#bus/request/schema.ts';
import { type Limits, PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import { requestAddress, sandboxAddress } from '#bus/subjects.ts';
import type { DurationMs } from '#bus/units.ts';
import { totalWithin } from '#actors/job/member.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { SandboxProjection } from '#adapters/sqlite/mod.ts';
import type { ApiserverVerb, Caller, Verbs } from './apiserver.ts';
import type { Decisions } from './decisions.ts';
import { create } from './create.ts';
import { jobOf } from './job-member.ts';
import type { FleetView } from './fleet.ts';
import { fork } from './forks.ts';
import { APISERVER_LIMITS } from './limits.ts';
import { type ManyOptions, toMany } from './many.ts';
import { type Losses, pageWithLosses, statusesToAsk } from './losses.ts';
import type { Resolve } from './resolve.ts';
import { lifecycle, newest } from './one-sandbox.ts';
import { type ProjectSnapshots, pageOfSnapshots } from './snapshots.ts';
import type { WaitingCreates } from './waiting-creates.ts';

export type VerbsOptions = {
  readonly eventLog: EventLog;
  readonly projection: SandboxProjection;
  readonly decisions: Decisions;
  readonly losses: Losses;
  readonly waiting: WaitingCreates;
  readonly fleet: Pick<FleetView, 'answer'>;
  readonly resolveStack: Resolve['stack'];
  readonly snapshots: ProjectSnapshots;
  /** What a sandbox gets that asks for nothing. */
  readonly defaultLimits: Limits;
  readonly clock: Clock;
  readonly shards: readonly Shard[];
  readonly laneCount: number;
  readonly platformVersion: string;
};

export const createVerbs = (o: VerbsOptions): Verbs<ApiserverVerb> => ({
  info: async () => ({ platformVersion: o.platformVersion, shards: [...o.shards], laneCount: o.laneCount }),
  fleet: (request, caller) => o.fleet.answer(request, caller),
  create: (request, caller) => create(o, request, caller),
  request: async ({ id }, { project }) => {
    const stored = await o.eventLog.last(requestAddress(project, id));
    if (!stored) throw DsecError.of('REQUEST_NOT_FOUND', `there is no request ${id} in project ${project}`);
    return { version: stored.commit.version, streamSequence: stored.sequence, state: stored.commit.state as unknown as RequestState };
  },
  get: async ({ ids }, { project }) => ({ sandboxes: await Promise.all(ids.map((id) => newest(o, project, id))) }),
  list: (request, caller) => list(o, request, caller),
  stop: ({ id, key }, caller) => lifecycle(o, id, { type: 'StopSandbox', reason: 'requested' }, key, caller),
  delete: ({ id, key }, caller) => lifecycle(o, id, { type: 'DeleteSandbox' }, key, caller),
  pause: ({ id, key }, caller) => lifecycle(o, id, { type: 'PauseSandbox' }, key, caller),
  resume: ({ id, key }, caller) => lifecycle(o, id, { type: 'ResumeSandbox' }, key, caller),
  pauseMany: (request, caller) => toMany(manyOf(o), 'pauseMany', request, caller),
  resumeMany: (request, caller) => toMany(manyOf(o), 'resumeMany', request, caller),
  snapshot: ({ id, key, snapshotId, scrub, purpose }, caller) => lifecycle(o, id, { type: 'SnapshotSandbox', snapshotId, scrub, purpose }, key, caller),
  fork: (request, caller) => fork(o, request, caller),
  snapshots: async (request, { project }) => pageOfSnapshots(await o.snapshots.list(project), request),
  deleteSnapshot: async ({ snapshotId }, { project }) => ({ deleted: await o.snapshots.remove(project, snapshotId) }),
  extend: async ({ id, key, totalMs: asked, runningMs, idleMs, idlePauseMs }, caller) => {
    const totalMs = asked && (await withinItsJob(o, caller.project, id, asked));
    const lives = Object.fromEntries(Object.entries({ totalMs, runningMs, idleMs, idlePauseMs }).filter(([, value]) => value !== undefined));
    if (Object.keys(lives).length === 0) throw DsecError.of('INVALID_ARGUMENT', 'extend: name at least one of totalMs, runningMs, idleMs and idlePauseMs');
    return lifecycle(o, id, { type: 'ExtendLives', ...lives }, key, caller);
  },
  events: (request, caller) => events(o, request, caller),
});

/** INV-ORPHAN: a member of a job is given no life beyond the job's, now as when it was made. */
const withinItsJob = async (o: VerbsOptions, project: ProjectName, id: SandboxId, totalMs: DurationMs): Promise<DurationMs> => {
  const job = JobId.safeParse((await newest(o, project, id))?.state.spec.labels[PLATFORM_LABELS.job]);
  return job.success ? totalWithin(await jobOf(o.eventLog, project, job.data), totalMs, o.clock.now()) : totalMs;
};

const manyOf = (o: VerbsOptions): ManyOptions => ({
  projection: o.projection,
  send: (id, command, key, caller) => lifecycle(o, id, command, key, caller),
});

const list = async (o: VerbsOptions, { labels, statuses, changedAfter, after, limit, atLeast }: ApiParsed<'list'>, { project }: Caller) => {
  await o.projection.waitFor(atLeast, APISERVER_LIMITS.atLeastWaitMs);
  const page = o.projection.list({ project, labels, statuses: statusesToAsk(statuses, o.losses), changedAfter, after, limit });
  return withinOneMessage(pageWithLosses(page, statuses, o.losses));
};

/** A page of sandboxes with much in their labels and env ends early: what is left comes with the next one. */
const withinOneMessage = (page: ApiResponse<'list'>): ApiResponse<'list'> => {
  const sandboxes: SandboxView[] = [];
  let bytes = 0;
  for (const view of page.sandboxes) {
    bytes += Buffer.byteLength(JSON.stringify(view));
    if (bytes > APISERVER_LIMITS.pageBytes && sandboxes.length > 0) return { ...page, sandboxes, next: sandboxes.at(-1)?.state.id ?? page.next };
    sandboxes.push(view);
  }
  return page;
};

const events = async (o: VerbsOptions, { id, afterVersion, limit }: ApiParsed<'events'>, { project }: Caller) => {
  const stored = o.shards.includes(parseSandboxId(id).shard) ? await o.eventLog.history(sandboxAddress(project, id), afterVersion, limit + 1) : [];
  if (stored.length === 0 && afterVersion === 0) throw DsecError.of('SANDBOX_NOT_FOUND', `there is no sandbox ${id} in project ${project}; see dsec ls`);
  const page: StoredCommit[] = [];
  let bytes = 0;
  for (const one of stored.slice(0, limit)) {
    bytes += JSON.stringify(one.commit).length;
    if (bytes > APISERVER_LIMITS.pageBytes && page.length > 0) break;
    page.push(one);
  }
  return { commits: page.map(({ commit, sequence }) => ({ ...commit, streamSequence: sequence })), more: page.length < stored.length };
};
