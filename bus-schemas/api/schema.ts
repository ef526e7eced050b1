/**
 * The verbs of `dsec.api.<project>.<verb>`: everything a client may ask of the control plane. @paper §2.1 §3.2
 * Requests and answers are JSON; an answer is `{ok: true, data}` or `{ok: false, error}`.
 */
import { z } from 'zod';
import { WireError } from '../errors.ts';
import { Decision } from './decision.ts';
import { IAM_API } from './iam.ts';
import { FLEET_API } from './fleet.ts';
import { FORK_API } from './fork.ts';
import { JOB_API } from './jobs.ts';
import { MANY_API } from './many.ts';
import { Commit } from '../envelope.ts';
import { ClientKey, RequestId, SandboxId, Shard, SnapshotId } from '../ids.ts';
import { SNAPSHOT_LIMITS, WIRE_LIMITS } from '../limits.ts';
import { GroupMode } from '../request/group.ts';
import { RequestState } from '../request/schema.ts';
import { ScrubRules, SnapshotPurpose, SnapshotView } from '../sandbox/snapshot.ts';
import { SandboxRequest } from '../sandbox/spec.ts';
import { SandboxState, SandboxStatus } from '../sandbox/state.ts';
import { DurationMs, TimestampMs } from '../units.ts';

export { Decision, GrantedLives } from './decision.ts';

const v = z.literal(1);

/** A sandbox as clients see it: the state of its newest commit, and which commit that is. */
export const SandboxView = z.object({
  version: z.number().int().positive(),
  streamSequence: z.number().int().positive(),
  state: SandboxState,
  /** Its Edge was declared lost after that commit, and the state says so; no commit does, as long as the Edge is away. */
  lost: z.boolean().default(false),
});
export type SandboxView = z.infer<typeof SandboxView>;

const one = z.strictObject({ v, id: SandboxId });
const key = ClientKey.optional();

export const API = {
  /** Who answers, and which shards exist. */
  info: { request: z.strictObject({ v }), response: z.object({ platformVersion: z.string(), shards: z.array(Shard), laneCount: z.number().int().positive() }) },
  /**
   * Creates `count` equal sandboxes under one client key; more than 256, and those that are all or nothing, in chunks below it. Accepted durably when answered; results are the commits of the
   * request actor and of the sandboxes on `dsec.out`. Same key and body: same answer. Other body: KEY_CONFLICT.
   */
  create: {
    request: z.strictObject({
      v,
      key: ClientKey,
      /** The key has just been made and names nothing yet: saves the look whether it names another request already. */
      freshKey: z.boolean().default(false),
      count: z.number().int().min(1).max(WIRE_LIMITS.maxCreatesPerGroup).default(1),
      /** All or nothing: no sandbox is started before every one of them has its place. */
      mode: GroupMode.default('asManyAsFit'),
      spec: SandboxRequest,
      timeoutMs: DurationMs.min(1_000)
        .max(24 * 3_600_000)
        .default(120_000 as DurationMs),
    }),
    /** `bodyHash` is what the request actor must show: another one means that the key was taken by another body. */
    response: z.object({ requestId: RequestId, bodyHash: z.string() }),
  },
  request: {
    request: z.strictObject({ v, id: RequestId }),
    response: z.object({ version: z.number().int(), streamSequence: z.number().int(), state: RequestState }),
  },
  /** Newest states by id, at most 256; null where no such sandbox exists in the project. */
  get: {
    request: z.strictObject({ v, ids: z.array(SandboxId).min(1).max(256) }),
    response: z.object({ sandboxes: z.array(SandboxView.nullable()) }),
  },
  /** Pages through the project's sandboxes in id order. `asOf`: stream sequence per shard that the answer reflects. */
  list: {
    request: z.strictObject({
      v,
      labels: z.record(z.string(), z.string()).default({}),
      statuses: z.array(SandboxStatus).default([]),
      /** Only what has changed after this sequence of its shard: how a watcher catches up. */
      changedAfter: z.record(z.string(), z.number().int().nonnegative()).default({}),
      after: z.string().optional(),
      limit: z.number().int().min(1).max(500).default(100),
      /** Wait until the projection reflects at least this sequence of a shard. */
      atLeast: z.record(z.string(), z.number().int().nonnegative()).default({}),
    }),
    response: z.object({ sandboxes: z.array(SandboxView), next: z.string().nullable(), asOf: z.record(z.string(), z.number().int()) }),
  },
  stop: { request: one.extend({ key }), response: Decision },
  delete: { request: one.extend({ key }), response: Decision },
  pause: { request: one.extend({ key }), response: Decision },
  resume: { request: one.extend({ key }), response: Decision },
  /** Named within the project: the same id names the same snapshot, of one sandbox. */
  snapshot: {
    request: one.extend({ key, snapshotId: SnapshotId, scrub: ScrubRules.default([]), purpose: SnapshotPurpose.default('keep') }),
    response: Decision,
  },
  /** The project's snapshots, by id. */
  snapshots: {
    request: z.strictObject({
      v,
      sandboxId: SandboxId.optional(),
      snapshotId: SnapshotId.optional(),
      after: z.string().optional(),
      limit: z.number().int().min(1).max(SNAPSHOT_LIMITS.page).default(100),
    }),
    response: z.object({ snapshots: z.array(SnapshotView), next: z.string().nullable() }),
  },
  /** Takes a snapshot's name away; its layers go when nothing stands on them. */
  deleteSnapshot: { request: z.strictObject({ v, snapshotId: SnapshotId, key }), response: z.object({ deleted: z.boolean() }) },
  extend: {
    request: one.extend({
      key,
      totalMs: DurationMs.optional(),
      runningMs: DurationMs.nullable().optional(),
      idleMs: DurationMs.nullable().optional(),
      idlePauseMs: DurationMs.nullable().optional(),
    }),
    response: Decision,
  },
  /** The commits of one sandbox, oldest first. */
  events: {
    request: one.extend({ afterVersion: z.number().int().nonnegative().default(0), limit: z.number().int().min(1).max(500).default(100) }),
    response: z.object({ commits: z.array(Commit.extend({ streamSequence: z.number().int() })), more: z.boolean() }),
  },
  ...FORK_API,
  ...MANY_API,
  ...FLEET_API,
  ...JOB_API,
  ...IAM_API,
} as const satisfies Record<string, { request: z.ZodType; response: z.ZodType }>;

/** Roles that answer verbs, and which: what is not named here is the apiserver's. */
export const API_SERVICES = {
  jobs: Object.keys(JOB_API) as (keyof typeof JOB_API)[],
  iam: Object.keys(IAM_API) as (keyof typeof IAM_API)[],
} as const;

export type ApiVerb = keyof typeof API;
export type ApiRequest<V extends ApiVerb> = z.input<(typeof API)[V]['request']>;
export type ApiParsed<V extends ApiVerb> = z.output<(typeof API)[V]['request']>;
export type ApiResponse<V extends ApiVerb> = z.output<(typeof API)[V]['response']>;

export const isApiVerb = (verb: string): verb is ApiVerb => Object.hasOwn(API, verb);

export const ApiAnswer = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: WireError }),
]);
export type ApiAnswer = z.infer<typeof ApiAnswer>;

/** What the Edge publishes on a command's `replyTo`. */
export const CommandReply = z.object({
  commandId: z.string(),
  at: TimestampMs,
  result: z.discriminatedUnion('ok', [z.object({ ok: z.literal(true), data: Decision }), z.object({ ok: z.literal(false), error: WireError })]),
});
export type CommandReply = z.infer<typeof CommandReply>;
