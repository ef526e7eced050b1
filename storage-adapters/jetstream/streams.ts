/**
 * The streams of the bus: what they must look like, how they are made, and the check that the server really has them so.
 *
 * A server drops options that it does not know without a word, so what counts is the configuration that it echoes, field
 * by field (BUS_MISCONFIGURED names the first ones that differ).
 */
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream';
import { DsecError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import { bucketStream, bucketSubjects, COMMANDS_STREAM, COMMANDS_SUBJECTS, EXEC_STREAM, EXEC_SUBJECTS, eventsBinding, eventsStream } from '#bus/subjects.ts';
import { RECORD_LIMITS } from '#bus/limits.ts';
import type { JetStreamApi } from './api.ts';
import { ApiRefusal, JS } from './errors.ts';
import { JETSTREAM_LIMITS } from './limits.ts';

export type StreamSettings = {
  readonly shards: readonly Shard[];
  /** Copies of every stream: 1 on one server, 3 in a cluster. */
  readonly replicas?: number;
  readonly duplicateWindowMs?: number;
};
type WantedConfig = Partial<StreamConfig> & { readonly name: string };

const NANOS_PER_MS = 1_000_000;

/** Says, on every shard's stream, how many shards there are: a client key finds its request by a hash over their number. */
const SHARDS_KEY = 'dsec_shards';

const eventsConfig = (shard: Shard, settings: StreamSettings): WantedConfig => ({
  name: eventsStream(shard),
  metadata: { [SHARDS_KEY]: String(settings.shards.length) },
  ...eventsBinding(shard),
  ...common(settings),
  retention: 'limits',
  max_msgs: -1,
  /** Live actors never age out; ended ones go by their tombstones. */
  max_age: 0,
  allow_direct: true,
  allow_msg_ttl: true,
  /** Tombstones are roll-ups, which need the purge permission: `deny_purge` must stay off. */
  allow_rollup_hdrs: true,
  allow_batched: true,
});

const commandsConfig = (settings: StreamSettings): WantedConfig => ({
  name: COMMANDS_STREAM,
  subjects: COMMANDS_SUBJECTS,
  ...common(settings),
  retention: 'workqueue',
  max_msgs: JETSTREAM_LIMITS.queuedCommands,
});

/** The oldest records of a sandbox go when it has too many: what is not recorded any more is run again, and says so. */
const execConfig = (settings: StreamSettings): WantedConfig => ({
  name: EXEC_STREAM,
  subjects: EXEC_SUBJECTS,
  ...common(settings),
  retention: 'limits',
  discard: 'old',
  max_age: RECORD_LIMITS.keptMs * NANOS_PER_MS,
  max_msgs_per_subject: RECORD_LIMITS.perSandbox,
});

/** A bucket of the object store, as NATS' own clients make it. */
export const bucketConfig = (bucket: string, replicas: number): WantedConfig => ({
  name: bucketStream(bucket),
  subjects: bucketSubjects(bucket),
  ...common({ replicas }),
  retention: 'limits',
  max_msgs: -1,
  max_age: 0,
  allow_direct: true,
  allow_rollup_hdrs: true,
  /** Marks of deleted objects go by themselves. */
  allow_msg_ttl: true,
});

const common = (settings: Omit<StreamSettings, 'shards'>): Partial<StreamConfig> => ({
  storage: 'file',
  num_replicas: settings.replicas ?? 1,
  duplicate_window: (settings.duplicateWindowMs ?? JETSTREAM_LIMITS.duplicateWindowMs) * NANOS_PER_MS,
  max_consumers: JETSTREAM_LIMITS.consumersPerStream,
  max_bytes: -1,
  /** A full stream refuses what is new; it never eats what it has acknowledged. */
  discard: 'new',
  deny_delete: true,
});

const wantedConfigs = (settings: StreamSettings): WantedConfig[] => [
  ...settings.shards.map((shard) => eventsConfig(shard, settings)),
  commandsConfig(settings),
  execConfig(settings),
];

/** Creates what is missing, updates what differs, then checks what the server echoes. Safe to run in many processes at once. */
export const ensureStreams = async (api: JetStreamApi, settings: StreamSettings): Promise<void> => {
  for (const wanted of wantedConfigs(settings)) await ensureStream(api, wanted);
};

export const ensureStream = async (api: JetStreamApi, wanted: WantedConfig): Promise<void> => {
  const existing = await infoOrNull(api, wanted.name);
  if (existing) assertSameShards(wanted, existing);
  if (existing && differences(wanted, existing.config).length === 0) return;
  const info = existing ? await update(api, wanted, existing) : await api.createStream(wanted);
  assertEchoed(wanted, info);
};

/** The check alone, for roles that may not create streams. */
export const checkStreams = async (api: JetStreamApi, settings: StreamSettings): Promise<void> => {
  for (const wanted of wantedConfigs(settings)) {
    const info = await api.streamInfo(wanted.name);
    assertSameShards(wanted, info);
    assertEchoed(wanted, info);
  }
};

const assertSameShards = ({ name, metadata }: WantedConfig, { config }: StreamInfo): void => {
  const [wanted, actual] = [metadata?.[SHARDS_KEY], config.metadata?.[SHARDS_KEY]];
  if (wanted === undefined || actual === undefined || wanted === actual) return;
  const message = `stream ${name} was made for ${actual} shards, the configuration says shardCount ${wanted}: it cannot be changed, because ids and keys were made with it. Set shardCount to ${actual}`;
  throw DsecError.of('BUS_MISCONFIGURED', message, { details: { stream: name, shardCount: Number(actual), asked: Number(wanted) } });
};

const infoOrNull = async (api: JetStreamApi, stream: string): Promise<StreamInfo | null> => {
  try {
    return await api.streamInfo(stream);
  } catch (thrown) {
    if (thrown instanceof ApiRefusal && thrown.apiCode === JS.streamNotFound) return null;
    throw thrown;
  }
};

/** Some fields can never be changed (storage, retention); the server's refusal does not say which, so we do. */
const update = async (api: JetStreamApi, wanted: WantedConfig, existing: StreamInfo): Promise<StreamInfo> => {
  try {
    return await api.updateStream({ ...existing.config, ...wanted });
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal)) throw thrown;
    throw misconfigured(wanted, existing.config, thrown);
  }
};

const assertEchoed = (wanted: WantedConfig, { config }: StreamInfo): void => {
  if (differences(wanted, config).length > 0) throw misconfigured(wanted, config);
};

const misconfigured = (wanted: WantedConfig, actual: StreamConfig, cause?: unknown): DsecError => {
  const fields = differences(wanted, actual);
  const told = fields.map((field) => `${field} is ${JSON.stringify(actual[field])}, must be ${JSON.stringify(wanted[field])}`).join('; ');
  const message = `stream ${wanted.name} is not as it must be: ${told}. Correct it on the server, or upgrade the server`;
  return DsecError.of('BUS_MISCONFIGURED', message, { details: { stream: wanted.name, fields }, cause });
};

/** Fields whose echo differs; the server leaves out false, zero and empty. */
export const differences = (wanted: Partial<StreamConfig>, actual: Partial<StreamConfig>): (keyof StreamConfig)[] =>
  (Object.keys(wanted) as (keyof StreamConfig)[]).filter((field) =>
    field === 'metadata' ? !holds(actual.metadata, wanted.metadata) : canonical(wanted[field]) !== canonical(actual[field]),
  );

/** The server keeps keys of its own beside ours. */
const holds = (actual: StreamConfig['metadata'] = {}, wanted: StreamConfig['metadata'] = {}): boolean =>
  Object.entries(wanted).every(([key, value]) => actual[key] === value);

const canonical = (value: unknown): string => {
  if (value === undefined || value === null || value === false || value === 0 || value === '') return 'none';
  if (Array.isArray(value)) return `[${value.map(canonical).sort().join(',')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, v]) => canonical(v) !== 'none');
  return `{${fields
    .map(([k, v]) => `${k}:${canonical(v)}`)
    .sort()
    .join(',')}}`;
};
