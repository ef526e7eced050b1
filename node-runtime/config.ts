/**
 * Configuration of every role: one schema, defaults < file < environment < flags; parsed once, frozen, passed explicitly.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { DsecError } from '#bus/errors.ts';
import { EdgeName, ProjectName, type Shard } from '#bus/ids.ts';
import { EXEC_LIMITS } from '#bus/limits.ts';
import { SPEC_LIMITS } from '#bus/limits.ts';
import { ADMISSION_LIMITS } from '#actors/edge/limits.ts';
import { Labels } from '#bus/sandbox/spec.ts';
import { LOG_LEVELS } from './log/log.ts';
import { defaultRunDir } from './run-directory.ts';

const hostName = (): string =>
  hostname()
    .toLowerCase()
    .replace(/[^a-z0-9_-]/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 40) || 'node';

export const Config = z.strictObject({
  /** Layers, uppers, logs, the bus's files. Kept over restarts. */
  dataDir: z.string().default('/var/lib/dsec'),
  /** Sockets, mounts, tombstones: in memory, see `run-directory.ts`. Short: socket paths are limited to 107 bytes. */
  runDir: z.string().default(defaultRunDir),
  /** Layer store, when it does not lie in the data directory: a shared file system, or one store for several platforms. */
  layersDir: z.string().optional(),
  /** What the layer store is: that directory, or a bucket of the bus' object store, with the directory as this node's copies in front. */
  layerStore: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('posix'), dir: z.string().optional() }),
      z.strictObject({
        type: z.literal('object'),
        bucket: z
          .string()
          .regex(/^[a-zA-Z0-9_-]{1,64}$/)
          .default('layers'),
      }),
    ])
    .default({ type: 'posix' }),
  /** How much disk copies of layers may take on a node whose store is a bucket; what is in use counts and is never removed. Default 64 GiB: some tens of large images. */
  layerCacheMiB: z.number().int().min(1).max(16_777_216).default(65_536),
  /** Where the roles' keys lie, when not in the data directory. */
  credentialsDir: z.string().optional(),
  edgeName: EdgeName.default(hostName() as EdgeName),
  /** First project; its credentials are in `<dataDir>/context.json`. */
  project: ProjectName.default('default' as ProjectName),
  /** Streams that the event log is spread over: 1…36. Never changed after the first start: ids and keys are made with it. */
  shardCount: z.number().int().min(1).max(36).default(1),
  laneCount: z.number().int().min(1).max(16).default(1),
  /** Copies of every stream: 1 on one server, 3 in a cluster of three or more. */
  replicas: z.union([z.literal(1), z.literal(3)]).default(1),
  /** How long the other roles wait for an Edge that cannot be heard before its sandboxes count as lost; the Edge freezes them before. */
  leaseMs: z.number().int().min(1_000).max(600_000).default(30_000),
  /** For tests: moves this process's wall clock, as a host without time synchronisation would. */
  clockOffsetMs: z.number().int().min(-3_600_000).max(3_600_000).default(0),
  /** Bus to use instead of an embedded one: comma-separated host:port. */
  servers: z.string().optional(),
  /** Port of the embedded bus on loopback; 0 takes a free one. */
  busPort: z.number().int().min(0).max(65_535).default(0),
  /** How often the bus flushes to disk: milliseconds, or 0 for every write. Bounds what a power cut may lose. */
  busSyncIntervalMs: z.number().int().min(0).max(600_000).default(1_000),
  /** How long the bus drops a repeated message by itself. Saves work; nothing that is promised rests on it. */
  busDuplicateWindowMs: z.number().int().min(100).max(600_000).optional(),
  /** How long output of ended commands is kept, in milliseconds; afterwards a reader is told OUTPUT_EXPIRED. */
  outputRetentionMs: z
    .number()
    .int()
    .min(100)
    .max(7 * 24 * 3_600_000)
    .default(EXEC_LIMITS.outputRetentionMs),
  /** Where /healthz, /readyz and /metrics are answered: host:port, port 0 for any free one; `off`: nowhere. `dsec up` gives the Edge the next port. The real one is in `<runDir>/<roles>.ops`. */
  opsListen: z
    .string()
    .regex(/^(off|.+:\d{1,5})$/, 'host:port, or off')
    .default('127.0.0.1:0'),
  /** Where spans go: an OTLP/HTTP collector's base address, a file of JSON lines, or, with neither, nowhere: then there are none. */
  traces: z.strictObject({ endpoint: z.url({ protocol: /^https?$/ }).optional(), file: z.string().min(1).optional() }).default({}),
  logLevel: z.enum(LOG_LEVELS).default('info'),
  /** What this node is and has, for sandboxes that require it: `{"gpu": "a100"}`. */
  nodeLabels: Labels.default({}),
  /** `null` keeps records of sandboxes and starts nothing: for scale tests of the control plane only, and said in the log and in beats. */
  backend: z.enum(['container', 'null']).default('container'),
  /** Edges that one process hosts with the null backend, named `<edgeName>-0`, `-1`, …: a fleet for scale tests. */
  nullEdges: z.number().int().min(1).max(256).default(1),
  /** Most sandboxes on this node; the default is what memory and descriptors allow, at most 4,096. */
  maxSandboxes: z.number().int().min(1).max(65_000).optional(),
  /** Memory that sandboxes may ask for in all; the default is what the machine has, times an over-commitment. */
  memoryMiB: z.number().int().min(64).optional(),
  /**
   * Compressed swap that the node makes for paused sandboxes when the first one is paused, and removes when it ends; 0: none. The default is
   * half of the memory, or none where the host has swap on a disk.
   */
  swapMiB: z.number().int().min(0).max(16_777_216).optional(),
  /** Real memory that stays free when a paused sandbox goes on, beside what it gave back: with less it is NODE_FULL, and rests on. */
  resumeFloorMiB: z.number().int().min(0).default(ADMISSION_LIMITS.resumeFloorMiB),
  /** Disk that sandboxes with a disk limit may ask for in all; the default is what is free, times an over-commitment. */
  diskMiB: z.number().int().min(0).optional(),
  /** Disk limit of a sandbox that asks for none. Null: it shares the node's free space. */
  sandboxDiskMiB: z.number().int().min(SPEC_LIMITS.diskMiBMin).max(SPEC_LIMITS.diskMiBMax).nullable().default(null),
});
export type Config = Readonly<z.infer<typeof Config>>;
export type ConfigInput = z.input<typeof Config>;

const ENVIRONMENT: Readonly<Record<string, keyof Config>> = {
  DSEC_DATA_DIR: 'dataDir',
  DSEC_RUN_DIR: 'runDir',
  DSEC_LAYERS_DIR: 'layersDir',
  DSEC_EDGE_NAME: 'edgeName',
  DSEC_SERVERS: 'servers',
  DSEC_LOG_LEVEL: 'logLevel',
};

/** Merges the four sources; INVALID_ARGUMENT names the field and what it may be. */
export const loadConfig = (options: { file?: string | undefined; env?: NodeJS.ProcessEnv; flags?: Partial<ConfigInput> }): Config => {
  const fromFile = options.file ? readConfigFile(options.file) : {};
  const fromEnv = Object.fromEntries(Object.entries(ENVIRONMENT).flatMap(([name, field]) => (options.env?.[name] ? [[field, options.env[name]]] : [])));
  const endpoint = options.env?.OTEL_EXPORTER_OTLP_ENDPOINT;
  const traces = endpoint ? { traces: { ...(fromFile.traces as object | undefined), endpoint } } : {};
  const flags = Object.fromEntries(Object.entries(options.flags ?? {}).filter(([, value]) => value !== undefined));
  const parsed = Config.safeParse({ ...fromFile, ...fromEnv, ...traces, ...flags });
  if (!parsed.success) {
    const what = parsed.error.issues.map((i) => `${i.path.map(String).join('.') || 'configuration'}: ${i.message}`).join('; ');
    throw DsecError.of('INVALID_ARGUMENT', `configuration${options.file ? ` ${options.file}` : ''}: ${what}`);
  }
  return Object.freeze({ ...parsed.data, dataDir: resolve(parsed.data.dataDir), runDir: resolve(parsed.data.runDir) });
};

const readConfigFile = (file: string): Record<string, unknown> => {
  if (!existsSync(file)) throw DsecError.of('INVALID_ARGUMENT', `configuration file ${file} does not exist`);
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch (cause) {
    throw DsecError.of('INVALID_ARGUMENT', `configuration file ${file} is not JSON: ${(cause as Error).message}`, { cause });
  }
};

/** Where everything lies on one node, from its configuration. The inventory of these is in ARCHITECTURE.md. */
export const pathsOf = (config: Config) => ({
  layers: resolve((config.layerStore.type === 'posix' ? config.layerStore.dir : undefined) ?? config.layersDir ?? join(config.dataDir, 'layers')),
  sandboxes: join(config.dataDir, 'sandboxes'),
  disks: join(config.dataDir, 'disks'),
  trash: join(config.dataDir, 'trash'),
  projections: join(config.dataDir, 'projections'),
  bus: join(config.dataDir, 'bus'),
  credentials: config.credentialsDir ? resolve(config.credentialsDir) : join(config.dataDir, 'credentials'),
  context: join(config.dataDir, 'context.json'),
  runDir: config.runDir,
  sockets: join(config.runDir, 's'),
});

export const shardsOf = (config: Pick<Config, 'shardCount'>): Shard[] => Array.from({ length: config.shardCount }, (_, i) => i.toString(36) as Shard);

/** Name of this node's sub-tree in the control-group hierarchies: one per data directory, so that two platforms on a machine stay apart. */
export const cgroupNameOf = (config: Config): string => `dsec-${createHash('sha256').update(config.dataDir).digest('hex').slice(0, 10)}`;
