/**
 * What a client asks for when it creates a sandbox, and the resolved form that travels behind the apiserver.
 * @paper §2.1 §2.3
 */
import { z } from 'zod';
import { ImageName, JobId, LayerDigest, SandboxId, SnapshotId } from '../ids.ts';
import { EXEC_LIMITS, SPEC_LIMITS } from '../limits.ts';
import { byteLengthOf } from '../op/byte-path.ts';
import { CpuMillis, DurationMs, MiB, TimestampMs } from '../units.ts';

export const Backend = z.enum(['container', 'microvm', 'vm', 'fncall']);
export type Backend = z.infer<typeof Backend>;

const noControl = (what: string) => z.string().refine((s) => !/[\0\n\r]/.test(s), `${what} may not contain a NUL or a line break`);

export const Labels = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]*$/, 'a label key is letters, digits, ".", "_", "/" or "-"')
      .max(SPEC_LIMITS.labelKeyLength),
    z.string().max(SPEC_LIMITS.labelValueLength),
  )
  .refine((l) => Object.keys(l).length <= SPEC_LIMITS.labels, `at most ${SPEC_LIMITS.labels} labels`);
export type Labels = z.infer<typeof Labels>;

export const Env = z
  .record(
    // what the kernel takes, as far as a terminal shows it: shells and build tools make names like `BASH_FUNC_f%%` and `npm_config_//host/:key`
    z.string().regex(/^[\x20-\x3c\x3e-\x7e]+$/, 'a variable has a name of printable ASCII without ='),
    z
      .string()
      .refine((s) => !s.includes('\0'), 'NUL in a value')
      .refine((s) => !Number.isNaN(byteLengthOf(s)), 'a value is text, with bytes that are no UTF-8 as lone surrogates U+DC80 to U+DCFF'),
  )
  .refine((e) => Object.keys(e).length <= SPEC_LIMITS.envEntries, `at most ${SPEC_LIMITS.envEntries} variables`)
  .refine(
    (e) => Object.entries(e).reduce((n, [k, v]) => n + Buffer.byteLength(k) + byteLengthOf(v) + 2, 0) <= SPEC_LIMITS.envBytes,
    `variables hold at most ${SPEC_LIMITS.envBytes} bytes together`,
  );
export type Env = z.infer<typeof Env>;

/** User inside the sandbox: a name from its /etc/passwd, a uid, or `uid:gid`. */
export const InitUser = noControl('user')
  .min(1)
  .max(64)
  .regex(/^([A-Za-z_][A-Za-z0-9_.-]*|\d{1,9}(:\d{1,9})?)$/, 'a user is a name, a uid, or uid:gid');
/** Absolute path inside the sandbox. */
export const GuestPath = noControl('path')
  .min(1)
  .regex(/^\//, 'a path must be absolute')
  .refine((s) => byteLengthOf(s) <= SPEC_LIMITS.pathBytes, `a path is text whose bytes are known, at most ${SPEC_LIMITS.pathBytes} of them`);

const limitFields = {
  memoryMiB: MiB.min(SPEC_LIMITS.memoryMiBMin).max(SPEC_LIMITS.memoryMiBMax),
  /** Swap that may be used beside the memory. 0: none, so that a sandbox above its memory is killed and not slowed down. */
  swapMiB: MiB.max(SPEC_LIMITS.memoryMiBMax),
  cpuMillis: CpuMillis.min(SPEC_LIMITS.cpuMillisMin).max(SPEC_LIMITS.cpuMillisMax),
  /** Share of a busy node's CPU beside the other sandboxes', as `cpu.weight`: 200 gets twice what 100 gets. */
  cpuWeight: z.number().int().min(SPEC_LIMITS.cpuWeightMin).max(SPEC_LIMITS.cpuWeightMax),
  /** Processes and threads together. */
  pids: z.number().int().min(SPEC_LIMITS.pidsMin).max(SPEC_LIMITS.pidsMax),
  /** Size of the writable layer, its file system's own tables included. Null: only the node's free space bounds it. */
  diskMiB: MiB.min(SPEC_LIMITS.diskMiBMin).max(SPEC_LIMITS.diskMiBMax).nullable(),
  /** Descriptors that one process may open. Null: what the node gives. */
  openFiles: z.number().int().min(SPEC_LIMITS.openFilesMin).max(SPEC_LIMITS.openFilesMax).nullable(),
  /** Output kept of each stream of a command that names no limit of its own. */
  outputBytes: z.number().int().min(0).max(EXEC_LIMITS.outputBytesMax),
};
export const DEFAULT_LIMITS = {
  memoryMiB: 512,
  swapMiB: 0,
  cpuMillis: 1000,
  cpuWeight: 100,
  pids: 512,
  diskMiB: null,
  openFiles: null,
  outputBytes: EXEC_LIMITS.outputBytesDefault,
} as const;

/** Hard limits of one sandbox, all written out. */
export const Limits = z.object({
  ...limitFields,
  swapMiB: limitFields.swapMiB.default(DEFAULT_LIMITS.swapMiB as MiB),
  cpuWeight: limitFields.cpuWeight.default(DEFAULT_LIMITS.cpuWeight),
  diskMiB: limitFields.diskMiB.default(DEFAULT_LIMITS.diskMiB),
  openFiles: limitFields.openFiles.default(DEFAULT_LIMITS.openFiles),
  outputBytes: limitFields.outputBytes.default(DEFAULT_LIMITS.outputBytes),
});
export type Limits = z.infer<typeof Limits>;
/** What a client asks for; what is absent gets the platform's default. */
export const AskedLimits = z.strictObject(limitFields).partial();

const life = DurationMs.min(SPEC_LIMITS.lifeMsMin).max(SPEC_LIMITS.lifeMsMax);
const lifeFields = { totalMs: life, runningMs: life.nullable(), idleMs: life.nullable(), idlePauseMs: life.nullable() };
/**
 * `totalMs`: absolute, from creation; ends the sandbox whatever happens. `runningMs`: since it last began to run, at its start
 * or when it was resumed; a pause ends the count. `idleMs`: since the newest command activity (the paper's `ttl_running_stop`).
 * `idlePauseMs`: so long after the newest command activity it is paused; `idleMs` goes on meanwhile, so that a longer one ends it.
 * Null means no such limit.
 */
export const Lives = z.object({ ...lifeFields, runningMs: lifeFields.runningMs.default(null), idlePauseMs: lifeFields.idlePauseMs.default(null) });
export type Lives = z.infer<typeof Lives>;
export const AskedLives = z.strictObject(lifeFields).partial();
export const DEFAULT_LIVES = { totalMs: 24 * 3_600_000, runningMs: null, idleMs: null, idlePauseMs: null } as const;

/** Names of destinations → allowed. Nothing is reachable unless a rule says so (@paper §6.5). */
export const NetworkRules = z
  .record(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]*$/)
      .max(253),
    z.boolean(),
  )
  .refine((r) => Object.keys(r).length <= 256, 'at most 256 rules');
export type NetworkRules = z.infer<typeof NetworkRules>;

/** Labels that the platform itself sets; they can be listed by like any other. */
export const PLATFORM_LABELS = { job: 'dsec/job', rollout: 'dsec/rollout', role: 'dsec/role' } as const;

/**
 * Whether a node may be shared with sandboxes of other projects (@paper §7: isolation bounds the blast radius).
 * `preferApart`: not where there is another node. `requireApart`: never; and nobody else comes to the node while it lives.
 */
export const Isolation = z.enum(['shared', 'preferApart', 'requireApart']);
export type Isolation = z.infer<typeof Isolation>;

/** What a client sends for each sandbox. Names are resolved by the apiserver. Unknown fields are refused, not ignored. */
export const SandboxRequest = z.strictObject({
  backend: Backend.default('container'),
  /**
   * A base layer; or the whole stack of a snapshot of the project; or of a capture of one of its sandboxes that was made for forks;
   * or what is left of a sandbox that has ended: its newest snapshot, its settings, and its recorded commands.
   */
  image: z.union([LayerDigest, ImageName, z.strictObject({ snapshot: SnapshotId, sandbox: SandboxId.optional() }), z.strictObject({ recover: SandboxId })]),
  workspaces: z
    .array(z.union([LayerDigest, ImageName]))
    .max(SPEC_LIMITS.workspaces)
    .default([]),
  toolkits: z
    .array(z.union([LayerDigest, ImageName]))
    .max(SPEC_LIMITS.toolkits)
    .default([]),
  limits: AskedLimits.default({}),
  lives: AskedLives.default({}),
  networkRules: NetworkRules.default({}),
  initUser: InitUser.default('root'),
  env: Env.default({}),
  labels: Labels.default({}),
  /** The job it belongs to: its defaults fill in what is left out here, its deadline bounds the total life. */
  job: JobId.optional(),
  /** Keyed commands are recorded off the node, so that a sandbox recovered from this one knows their results. */
  recordCommands: z.boolean().default(false),
  /** Labels that a node must have, `gpu=a100`; what nodes have is in their configuration. */
  require: Labels.default({}),
  isolation: Isolation.default('shared'),
  hostname: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'not a host name')
    .optional(),
});
export type SandboxRequest = z.infer<typeof SandboxRequest>;

/** A request with every name resolved and every default written out: what actors decide on and nodes execute. */
export const SandboxSpec = z.object({
  backend: Backend,
  /** Name or digest that the client gave for the base, for people. */
  image: z.string(),
  /** Lowest first: base, workspaces, toolkits (@paper §5.1). */
  layers: z.array(LayerDigest).min(1),
  limits: Limits,
  lives: Lives,
  networkRules: NetworkRules,
  initUser: InitUser,
  env: Env,
  labels: Labels,
  require: Labels.default({}),
  isolation: Isolation.default('shared'),
  /** Null: named after the sandbox's own id. */
  hostname: z.string().nullable(),
  recordCommands: z.boolean().default(false),
  /** The job in whose share of the quota it counts; absent where its job has none. */
  share: JobId.optional(),
  /**
   * The lost sandbox whose place it takes, and what it stands on: a snapshot of that, or its image. What had ended before
   * `begunAt` is in the snapshot.
   */
  recoveredFrom: z
    .object({ sandbox: SandboxId, snapshot: z.object({ id: SnapshotId, begunAt: TimestampMs }).nullable() })
    .nullable()
    .default(null),
});
export type SandboxSpec = z.infer<typeof SandboxSpec>;
