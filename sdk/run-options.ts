/**
 * The options of `runContainer` in the caller's own words and units, checked before anything is sent, and how they map
 * onto the wire's `SandboxRequest`. @paper §2.1 listing 1
 */
import { z } from 'zod';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { ClientKey, ImageName, JobId, LayerDigest, SandboxId, SnapshotId } from '#bus/ids.ts';
import { EXEC_LIMITS, SPEC_LIMITS, WIRE_LIMITS } from '#bus/limits.ts';
import { Backend, Env, InitUser, Isolation, Labels, NetworkRules, type SandboxRequest } from '#bus/sandbox/spec.ts';
import { SDK_LIMITS } from './limits.ts';

const layer = z
  .string()
  .refine(
    (name) => LayerDigest.safeParse(name).success || ImageName.safeParse(name).success,
    'must be a name like "debian", "team/tool:1.2", or sha256:<64 hex digits>',
  );
const between = (what: string, min: number, max: number) =>
  z.number(`must be a number of ${what}`).min(min, `must be at least ${min} ${what}`).max(max, `must be at most ${max} ${what}`);
const seconds = between('seconds', SPEC_LIMITS.lifeMsMin / 1_000, SPEC_LIMITS.lifeMsMax / 1_000);

const RunOptionsSchema = z.strictObject({
  /** Base layer, by a name of the platform's store or a digest; or a snapshot of the project, with all it stands on; or what is left of a lost sandbox. */
  image: z.union(
    [layer, z.strictObject({ snapshot: SnapshotId, sandbox: SandboxId.optional() }), z.strictObject({ recover: SandboxId })],
    'must be an image, by name or digest, {snapshot: id}, or {recover: id}',
  ),
  /** Layers above the base, lowest first. */
  workspaces: z.array(layer).max(SPEC_LIMITS.workspaces).optional(),
  /** Layers above the workspaces, lowest first. */
  toolkits: z.array(layer).max(SPEC_LIMITS.toolkits).optional(),
  /** MiB. A hard limit: beyond it the sandbox's processes are killed. */
  memoryLimitMb: between('MiB', SPEC_LIMITS.memoryMiBMin, SPEC_LIMITS.memoryMiBMax).int('must be a whole number of MiB').optional(),
  /** Cores, in thousandths: 0.5 is half a core. */
  cpuCoresLimit: between('cores', SPEC_LIMITS.cpuMillisMin / 1_000, SPEC_LIMITS.cpuMillisMax / 1_000).optional(),
  /** MiB of swap beside the memory, where the node has swap; 0 when absent. */
  swapLimitMb: between('MiB', 0, SPEC_LIMITS.memoryMiBMax).int('must be a whole number of MiB').optional(),
  /** Share of the CPU on a busy node; 100 when absent, 200 gets twice as much. */
  cpuWeight: between('shares', SPEC_LIMITS.cpuWeightMin, SPEC_LIMITS.cpuWeightMax).int('must be a whole number').optional(),
  /** Processes and threads. */
  pidsLimit: between('processes', SPEC_LIMITS.pidsMin, SPEC_LIMITS.pidsMax).int('must be a whole number').optional(),
  /** MiB that the sandbox may write; beyond it the disk is full inside. The node's free space when absent. */
  diskLimitMb: between('MiB', SPEC_LIMITS.diskMiBMin, SPEC_LIMITS.diskMiBMax).int('must be a whole number of MiB').optional(),
  /** Files that one process may have open. */
  openFilesLimit: between('files', SPEC_LIMITS.openFilesMin, SPEC_LIMITS.openFilesMax).int('must be a whole number').optional(),
  /** Bytes kept of each output stream of a command that names no limit of its own. */
  outputLimitBytes: between('bytes', 0, EXEC_LIMITS.outputBytesMax).int('must be a whole number of bytes').optional(),
  /** Seconds without any command until the sandbox is stopped; null for no idle limit. */
  ttlRunningStop: seconds.nullable().optional(),
  /** Seconds without any command until the sandbox is paused; the next command resumes it. `ttlRunningStop` goes on meanwhile. */
  ttlRunningPause: seconds.nullable().optional(),
  /** Seconds that it may run without a pause; null for no such limit. */
  ttlRunning: seconds.nullable().optional(),
  /** Seconds from creation until the sandbox is stopped, whatever it does. */
  ttlTotal: seconds.optional(),
  /** Destination → may it be reached. What no rule names cannot be reached. */
  networkRules: NetworkRules.optional(),
  /** User that commands run as: a name of the image, a uid, or `uid:gid`. */
  initUser: InitUser.optional(),
  env: Env.optional(),
  labels: Labels.optional(),
  /** Keyed commands are recorded off the node, so that `recover` can answer them again when the node is lost. */
  recordCommands: z.boolean().optional(),
  /** Id of the job that it belongs to. */
  job: JobId.optional(),
  hostname: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be 1 to 63 of a-z, 0-9 and "-"')
    .optional(),
  backend: Backend.optional(),
  /** Labels that the node must have: `{ gpu: 'a100' }`. */
  require: Labels.optional(),
  /** Whether it may share a node with other projects' sandboxes; `shared` when absent. */
  isolation: Isolation.optional(),
  /** Names this create: the same key with the same options always gives the same sandbox. Random when absent. */
  key: ClientKey.optional(),
});
/** What `runContainer` takes. Unknown fields are refused, not ignored. */
export type RunOptions = { [K in keyof z.input<typeof RunOptionsSchema>]: z.input<typeof RunOptionsSchema>[K] | undefined } & {
  image: string | { readonly snapshot: string; readonly sandbox?: string } | { readonly recover: string };
};

export type Order = { readonly spec: z.input<typeof SandboxRequest>; readonly key: ClientKey | undefined };

/** Throws INVALID_ARGUMENT that names the field as the caller wrote it, or PAYLOAD_TOO_LARGE. */
export const orderOf = (options: RunOptions): Order => {
  const parsed = RunOptionsSchema.safeParse(withoutUndefined(options));
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'options of the sandbox', parsed.error);
  const o = parsed.data;
  const spec = withoutUndefined({
    backend: o.backend,
    image: o.image,
    job: o.job,
    workspaces: o.workspaces,
    toolkits: o.toolkits,
    limits: withoutUndefined({
      memoryMiB: o.memoryLimitMb,
      cpuMillis: o.cpuCoresLimit === undefined ? undefined : Math.round(o.cpuCoresLimit * 1_000),
      pids: o.pidsLimit,
      swapMiB: o.swapLimitMb,
      cpuWeight: o.cpuWeight,
      diskMiB: o.diskLimitMb,
      openFiles: o.openFilesLimit,
      outputBytes: o.outputLimitBytes,
    }),
    lives: withoutUndefined({ totalMs: toMs(o.ttlTotal), runningMs: toMs(o.ttlRunning), idleMs: toMs(o.ttlRunningStop), idlePauseMs: toMs(o.ttlRunningPause) }),
    networkRules: o.networkRules,
    initUser: o.initUser,
    env: o.env,
    labels: o.labels,
    require: o.require,
    isolation: o.isolation,
    recordCommands: o.recordCommands,
    hostname: o.hostname,
  });
  assertSpecFits(spec);
  return { spec: spec as z.input<typeof SandboxRequest>, key: o.key };
};

const toMs = <T extends null | undefined>(value: number | T): number | T => (typeof value === 'number' ? Math.round(value * 1_000) : value);

const withoutUndefined = <T>(record: T): T =>
  record !== null && typeof record === 'object' && !Array.isArray(record)
    ? (Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as T)
    : record;

const assertSpecFits = (spec: object): void => {
  const bytes = Buffer.byteLength(JSON.stringify(spec));
  if (bytes <= WIRE_LIMITS.maxSpecBytes) return;
  throw DsecError.of(
    'PAYLOAD_TOO_LARGE',
    `options of the sandbox hold ${bytes} bytes; the limit is ${WIRE_LIMITS.maxSpecBytes}. Shorten env and labels, or put data in a workspace layer`,
    {
      details: { bytes, limitBytes: WIRE_LIMITS.maxSpecBytes },
    },
  );
};

const Wait = z.strictObject({
  timeoutMs: between('ms', 1, SDK_LIMITS.createTimeoutMsMax).int().default(SDK_LIMITS.createTimeoutMs),
  signal: z.instanceof(AbortSignal).optional(),
});
export type WaitOptions = { readonly timeoutMs?: number | undefined; readonly signal?: AbortSignal | undefined };

export const waitOptionsOf = (options: WaitOptions): { timeoutMs: number; signal: AbortSignal | undefined } => {
  const parsed = Wait.safeParse(withoutUndefined({ ...options }));
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'options of the call', parsed.error);
  return { timeoutMs: parsed.data.timeoutMs, signal: parsed.data.signal };
};

/** The size of a group, checked. */
export const groupSize = (count: number): number => {
  if (Number.isInteger(count) && count >= 1 && count <= WIRE_LIMITS.maxCreatesPerGroup) return count;
  throw DsecError.of('INVALID_ARGUMENT', `count: must be a whole number from 1 to ${WIRE_LIMITS.maxCreatesPerGroup}`, { details: { fields: ['count'] } });
};
