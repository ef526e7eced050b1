/** One job and every command it can get, with the values that make a difference. */
import { ClientKey, jobIdFor, type ProjectName } from '#bus/ids.ts';
import { type JobCommand, JobSpec, type MemberGoal } from '#bus/job/schema.ts';
import { jobAddress } from '#bus/subjects.ts';
import type { DurationMs } from '#bus/units.ts';

export const T0 = 1_700_000_000_000;
export const LEASE_MS = 60_000;
export const GRACE_MS = 30_000;
export const LIFE_MS = 24 * 3_600_000;
const project = 'acme' as ProjectName;
const key = ClientKey.parse('train-7');
export const jobId = jobIdFor(project, key, 4);
export const address = jobAddress(project, jobId);

export const specOf = (over: Partial<JobSpec> = {}): JobSpec => JobSpec.parse({ leaseMs: LEASE_MS, graceMs: GRACE_MS, lifeMs: LIFE_MS, ...over });
export const create = (holder: string | null = 'a', over: Partial<JobSpec> = {}, bodyHash = 'b0d1'): JobCommand => ({
  type: 'CreateJob',
  key,
  bodyHash,
  spec: specOf(over),
  holder,
});
export const claim = (holder: string, over: { takeover?: boolean; resume?: boolean } = {}): JobCommand => ({
  type: 'ClaimJob',
  holder,
  takeover: false,
  resume: false,
  ...over,
});
export const renew = (holder: string, epoch: number): JobCommand => ({ type: 'RenewJobLease', holder, epoch });
export const release = (holder: string, epoch: number): JobCommand => ({ type: 'ReleaseJob', holder, epoch });
export const pause: JobCommand = { type: 'PauseJob' };
export const resume: JobCommand = { type: 'ResumeJob' };
export const stop: JobCommand = { type: 'StopJob' };
export const extend = (lifeMs: number): JobCommand => ({ type: 'ExtendJob', lifeMs: lifeMs as DurationMs });
export const members = (goal: MemberGoal, goalVersion: number, left = 0): JobCommand => ({
  type: 'ReportMembers',
  goal,
  goalVersion,
  counts: { reached: 3, failed: 1, left },
});
export const passed = (kind: 'owner' | 'life' | 'transition', version: number): JobCommand => ({ type: 'JobDeadlinePassed', kind, version });

const VERSIONS = [0, 1, 2, 3] as const;
export const COMMANDS: readonly JobCommand[] = [
  create(),
  create(null),
  create('a', { onOwnerLost: 'stop' }),
  create('a', { onOwnerLost: 'keep' }),
  create('a', {}, 'other'),
  ...['a', 'b'].flatMap((holder) => [claim(holder), claim(holder, { takeover: true }), claim(holder, { resume: true })]),
  ...['a', 'b'].flatMap((holder) => [1, 2, 3].flatMap((epoch) => [renew(holder, epoch), release(holder, epoch)])),
  pause,
  resume,
  stop,
  extend(1),
  extend(2 * LIFE_MS),
  ...[1, 2, 3].flatMap((version) => (['paused', 'running', 'ended'] as const).flatMap((goal) => [members(goal, version), members(goal, version, 2)])),
  ...VERSIONS.flatMap((version) => (['owner', 'life', 'transition'] as const).map((kind) => passed(kind, version))),
];
export const DELAYS_MS: readonly number[] = [0, 1_000, LEASE_MS + GRACE_MS, 700_000, 2 * LIFE_MS];
