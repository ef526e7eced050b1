/**
 * What a client asks for when it creates a sandbox, and the resolved form that travels behind the apiserver.
 * @paper §2.1 §2.3
 */
import { z } from 'zod';
import { ImageName, LayerDigest } from '../ids.ts';
import { SPEC_LIMITS } from '../limits.ts';
import { CpuMillis, DurationMs, MiB } from '../units.ts';

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
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not a name of an environment variable'),
    z.string().refine((s) => !s.includes('\0'), 'NUL in a value'),
  )
  .refine((e) => Object.keys(e).length <= SPEC_LIMITS.envEntries, `at most ${SPEC_LIMITS.envEntries} variables`)
  .refine(
    (e) => Object.entries(e).reduce((n, [k, v]) => n + Buffer.byteLength(k) + Buffer.byteLength(v) + 2, 0) <= SPEC_LIMITS.envBytes,
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
  .refine((s) => Buffer.byteLength(s) <= SPEC_LIMITS.pathBytes, 'path too long');

/** Hard limits of one sandbox; absent on the wire means the node's default. */
export const Limits = z.object({
  memoryMiB: MiB.min(SPEC_LIMITS.memoryMiBMin).max(SPEC_LIMITS.memoryMiBMax),
  cpuMillis: CpuMillis.min(SPEC_LIMITS.cpuMillisMin).max(SPEC_LIMITS.cpuMillisMax),
  pids: z.number().int().min(SPEC_LIMITS.pidsMin).max(SPEC_LIMITS.pidsMax),
});
export type Limits = z.infer<typeof Limits>;
export const DEFAULT_LIMITS = { memoryMiB: 512, cpuMillis: 1000, pids: 512 } as const;

const life = DurationMs.min(SPEC_LIMITS.lifeMsMin).max(SPEC_LIMITS.lifeMsMax);
/**
 * `totalMs`: absolute, from creation; ends the sandbox whatever happens. `idleMs`: since the newest command activity
 * (the paper's `ttl_running_stop`); null means no idle limit.
 */
export const Lives = z.object({ totalMs: life, idleMs: life.nullable() });
export type Lives = z.infer<typeof Lives>;
export const DEFAULT_LIVES = { totalMs: 24 * 3_600_000, idleMs: null } as const;

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

/** What a client sends for each sandbox. Names are resolved by the apiserver. Unknown fields are refused, not ignored. */
export const SandboxRequest = z.strictObject({
  backend: Backend.default('container'),
  image: z.union([LayerDigest, ImageName]),
  workspaces: z
    .array(z.union([LayerDigest, ImageName]))
    .max(SPEC_LIMITS.workspaces)
    .default([]),
  toolkits: z
    .array(z.union([LayerDigest, ImageName]))
    .max(SPEC_LIMITS.toolkits)
    .default([]),
  limits: Limits.partial().strict().default({}),
  lives: Lives.partial().strict().default({}),
  networkRules: NetworkRules.default({}),
  initUser: InitUser.default('root'),
  env: Env.default({}),
  labels: Labels.default({}),
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
  /** Null: named after the sandbox's own id. */
  hostname: z.string().nullable(),
});
export type SandboxSpec = z.infer<typeof SandboxSpec>;
