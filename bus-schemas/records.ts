/**
 * What commits hold, kind by kind: the schemas of states and events, read in every version ever written.
 * `Commit.schema` is one version for both; `UPCASTERS['<kind>.state']` and `['<kind>.event']` have the same length.
 */
import type { z } from 'zod';
import { EdgeEvent, EdgeState } from './edge/schema.ts';
import { invalid } from './envelope.ts';
import { DsecError } from './errors.ts';
import { JobEvent, JobState } from './job/schema.ts';
import { proofOf } from './proof.ts';
import { ProjectEvent, ProjectState } from './project/schema.ts';
import { RequestEvent, RequestState } from './request/schema.ts';
import { RolloutEvent, RolloutState } from './rollout/schema.ts';
import { SandboxEvent } from './sandbox/events.ts';
import { SandboxState } from './sandbox/state.ts';
import { newestVersion, upcast, type Versioned } from './upcasters.ts';

export const RECORDS = {
  sandbox: { state: SandboxState, event: SandboxEvent },
  request: { state: RequestState, event: RequestEvent },
  edge: { state: EdgeState, event: EdgeEvent },
  project: { state: ProjectState, event: ProjectEvent },
  job: { state: JobState, event: JobEvent },
  rollout: { state: RolloutState, event: RolloutEvent },
} as const;
export type RecordKind = keyof typeof RECORDS;

/** The version that this program writes into the commits of a kind. */
export const recordVersion = (kind: RecordKind): number => newestVersion(`${kind}.state`);

/** Types a state read from the log; throws MALFORMED_MESSAGE or UNSUPPORTED_VERSION. Without `version`: the newest. */
export const readState = <K extends RecordKind>(kind: K, raw: unknown, version = recordVersion(kind)): z.output<(typeof RECORDS)[K]['state']> =>
  read(`${kind}.state`, RECORDS[kind].state, `state of a ${kind}`, raw, version) as z.output<(typeof RECORDS)[K]['state']>;

/** Types an event read from the log; throws as `readState` does. */
export const readEvent = <K extends RecordKind>(kind: K, raw: unknown, version = recordVersion(kind)): z.output<(typeof RECORDS)[K]['event']> =>
  read(`${kind}.event`, RECORDS[kind].event, `event of a ${kind}`, raw, version) as z.output<(typeof RECORDS)[K]['event']>;

const read = (lifter: string, schema: z.ZodType, what: string, raw: unknown, version: number): unknown => {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) throw DsecError.of('MALFORMED_MESSAGE', `${what} is not a JSON object`);
  if (version === newestVersion(lifter) && proofOf(schema)(raw)) return raw;
  const { v: _, ...record } = upcast(lifter, { ...raw, v: version } as Versioned, what);
  const parsed = schema.safeParse(record);
  if (!parsed.success) throw invalid('MALFORMED_MESSAGE', what, parsed.error);
  return parsed.data;
};
