/**
 * Identifiers and names: what they look like, how they are made, how they are taken apart.
 *
 * An id that enters a subject is one token of `[a-z0-9_-]`. A sandbox id carries its shard and its Edge, so that any
 * apiserver finds the owner without asking anybody (@paper §3.2).
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ID_LIMITS } from './limits.ts';

/** What may stand as one token of a subject: lower-case, starts with a letter or a digit. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9_-]*$/;

const nameOf = <Brand extends string>(what: string, maxLength: number) =>
  z.string().max(maxLength, `${what} is longer than ${maxLength} characters`).regex(NAME_PATTERN, `${what} must match ${NAME_PATTERN.source}`).brand<Brand>();

export const ProjectName = nameOf<'ProjectName'>('project', ID_LIMITS.nameLength);
export type ProjectName = z.infer<typeof ProjectName>;

export const EdgeName = nameOf<'EdgeName'>('edge', ID_LIMITS.nameLength);
export type EdgeName = z.infer<typeof EdgeName>;

/** Shard of the event log: 0…35, one base-36 digit, chosen at an actor's birth and never changed. */
export const Shard = z
  .string()
  .regex(/^[0-9a-z]$/, 'shard must be one base-36 digit')
  .brand<'Shard'>();
export type Shard = z.infer<typeof Shard>;

const SANDBOX_ID = /^sb-([0-9a-z])-([0-9a-f]{20})-([a-z0-9][a-z0-9_-]*)$/;
export const SandboxId = z
  .string()
  .max(ID_LIMITS.sandboxIdLength)
  .regex(SANDBOX_ID, 'a sandbox id looks like sb-<shard>-<20 hex digits>-<edge>')
  .brand<'SandboxId'>();
export type SandboxId = z.infer<typeof SandboxId>;

const REQUEST_ID = /^rq-([0-9a-z])-([0-9a-f]{32})$/;
export const RequestId = z.string().regex(REQUEST_ID, 'a request id looks like rq-<shard>-<32 hex digits>').brand<'RequestId'>();
export type RequestId = z.infer<typeof RequestId>;

const JOB_ID = /^jb-([0-9a-z])-([0-9a-f]{32})$/;
export const JobId = z.string().regex(JOB_ID, 'a job id looks like jb-<shard>-<32 hex digits>').brand<'JobId'>();
export type JobId = z.infer<typeof JobId>;

const ROLLOUT_ID = /^ro-([0-9a-z])-([0-9a-f]{32})$/;
export const RolloutId = z.string().regex(ROLLOUT_ID, 'a rollout id looks like ro-<shard>-<32 hex digits>').brand<'RolloutId'>();
export type RolloutId = z.infer<typeof RolloutId>;

export const ExecId = z
  .string()
  .regex(/^ex-[0-9a-f]{24}$/, 'an exec id looks like ex-<24 hex digits>')
  .brand<'ExecId'>();
export type ExecId = z.infer<typeof ExecId>;

/** A client's own name for one request: printable ASCII, no spaces. Equal keys name the same request for the key's lifetime. */
export const ClientKey = z
  .string()
  .min(1, 'a client key may not be empty')
  .max(ID_LIMITS.clientKeyLength)
  .regex(/^[\x21-\x7e]+$/, 'a client key is printable ASCII without spaces')
  .brand<'ClientKey'>();
export type ClientKey = z.infer<typeof ClientKey>;

/** Content address of a layer: SHA-256 of the EROFS image file. */
export const LayerDigest = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, 'a layer digest looks like sha256:<64 hex digits>')
  .brand<'LayerDigest'>();
export type LayerDigest = z.infer<typeof LayerDigest>;

/** Name of a layer in the store, `debian` or `team/tool:1.2`; resolved to a digest before anything starts. */
export const ImageName = z
  .string()
  .min(1, 'an image name may not be empty')
  .max(ID_LIMITS.imageNameLength)
  .regex(/^[a-z0-9][a-z0-9._-]*(\/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9][A-Za-z0-9._-]*)?$/, 'an image name looks like name, path/name or name:tag')
  .brand<'ImageName'>();
export type ImageName = z.infer<typeof ImageName>;

/** What a snapshot is called; its own within a project. Also one component of an image name. */
export const SnapshotId = z
  .string()
  .max(ID_LIMITS.snapshotIdLength)
  .regex(/^[a-z0-9][a-z0-9._-]*$/, 'a snapshot id is lower-case letters, digits, ".", "_" and "-", and begins with a letter or a digit')
  .brand<'SnapshotId'>();
export type SnapshotId = z.infer<typeof SnapshotId>;

const hex = (length: number, ...parts: readonly (string | number)[]): string => createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, length);

/** The shard of a new actor: spread by hash over `shardCount` (1…36) streams. */
export const shardFor = (shardCount: number, ...parts: readonly string[]): Shard => (Number.parseInt(hex(8, ...parts), 16) % shardCount).toString(36) as Shard;

/** The request actor that a client key names; the same for every process and for ever. */
export const requestIdFor = (project: ProjectName, key: ClientKey, shardCount: number): RequestId =>
  `rq-${shardFor(shardCount, project, key)}-${hex(32, project, key)}` as RequestId;

/** The chunk of a group: a request of its own below the one that the client key names; chunks are spread over the shards. */
export const chunkIdFor = (parent: RequestId, chunk: number, shardCount: number): RequestId =>
  `rq-${shardFor(shardCount, parent, String(chunk))}-${hex(32, parent, 'chunk', chunk)}` as RequestId;

/** The sandbox of one attempt at one item of a request. A function of its arguments, so a repeated decision repeats it. */
export const sandboxIdFor = (requestId: RequestId, index: number, attempt: number, edge: EdgeName): SandboxId =>
  `sb-${shardOfRequest(requestId)}-${hex(20, requestId, index, attempt, edge)}-${edge}` as SandboxId;

/** The job that a client key names; the same for every process and for ever. */
export const jobIdFor = (project: ProjectName, key: ClientKey, shardCount: number): JobId =>
  `jb-${shardFor(shardCount, 'job', project, key)}-${hex(32, 'job', project, key)}` as JobId;

/** The rollout that a key names within its job. It lies in the job's shard, so that one read finds all of a job. */
export const rolloutIdFor = (jobId: JobId, key: ClientKey): RolloutId => `ro-${shardOfJob(jobId)}-${hex(32, 'rollout', jobId, key)}` as RolloutId;

/** The command that a client key names inside one sandbox. */
export const execIdFor = (sandboxId: SandboxId, key: ClientKey): ExecId => `ex-${hex(24, sandboxId, key)}` as ExecId;

/** The project first: a stream tells repetitions by message id, across projects. */
export const messageIdOf = (project: ProjectName, ...parts: readonly (string | number)[]): string => [project, ...parts].join(':');

export const shardOfRequest = (id: RequestId): Shard => id.charAt(3) as Shard;
export const shardOfJob = (id: JobId): Shard => id.charAt(3) as Shard;
export const shardOfRollout = (id: RolloutId): Shard => id.charAt(3) as Shard;

export const parseSandboxId = (id: SandboxId): { shard: Shard; edge: EdgeName } => {
  const match = SANDBOX_ID.exec(id);
  if (!match) throw new Error(`not a sandbox id: ${id}`); // a branded id that does not parse is a programmer's error
  return { shard: match[1] as Shard, edge: sameName(match[3] as EdgeName) };
};

/** Few nodes are named by very many ids: whoever holds those holds one string for each node. */
const sameName = (edge: EdgeName): EdgeName => {
  const known = EDGE_NAMES.get(edge);
  if (known !== undefined) return known;
  if (EDGE_NAMES.size >= ID_LIMITS.edgeNamesKept) EDGE_NAMES.clear();
  EDGE_NAMES.set(edge, edge);
  return edge;
};
const EDGE_NAMES = new Map<string, EdgeName>();

/** Hash of a request body that decides "same key, same body". Keys of objects are sorted, so field order does not matter. */
export const bodyHashOf = (body: unknown): string => hex(32, canonicalJson(body));

const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, v: unknown) =>
    v !== null && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) : v,
  );
