/** Which layers live sandboxes stand on, for garbage collection from the command line: read from the log, by the operator's key. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest, Shard } from '#bus/ids.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import { connectBus } from '../bus/connect.ts';
import { type Config, pathsOf, shardsOf } from '../config.ts';
import { createLog } from '../log/log.ts';
import { serversFromContext } from './layer-store.ts';

const CONNECT_MS = 2_000;

/** HOST_UNFIT when the platform does not run and what is on disk may belong to live sandboxes. */
export const liveLayers = async (config: Config): Promise<ReadonlySet<LayerDigest>> => {
  const paths = pathsOf(config);
  const servers = config.servers?.split(',') ?? serversFromContext(paths.context);
  const key = join(paths.credentials, 'role-operator.nk');
  if (servers && existsSync(key)) {
    try {
      return await fromLog(config, servers, readFileSync(key, 'utf8').trim());
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || thrown.code !== 'BUS_UNAVAILABLE') throw thrown;
    }
  }
  const maybeLive = existsSync(paths.sandboxes) ? readdirSync(paths.sandboxes).filter((id) => existsSync(join(paths.sandboxes, id, 'upper'))) : [];
  if (maybeLive.length === 0) return new Set();
  throw DsecError.of(
    'HOST_UNFIT',
    `the platform does not run, and ${maybeLive.length} sandboxes on disk may be live (${maybeLive[0]}, …): start dsec up, then collect again`,
  );
};

const fromLog = async (config: Config, servers: readonly string[], nkeySeed: string): Promise<ReadonlySet<LayerDigest>> => {
  const connection = await connectBus({ servers, credentials: { nkeySeed } }, 'dsec-image-gc', createLog('gc', 'error'), CONNECT_MS);
  try {
    const { eventLog } = connectJetStream(connection);
    return await layersOfLive(eventLog, shardsOf(config));
  } finally {
    await connection.close();
  }
};

/** Layers of every sandbox of every node that has not ended. */
export const layersOfLive = async (eventLog: EventLog, shards: readonly Shard[]): Promise<ReadonlySet<LayerDigest>> => {
  const found = await Promise.all(shards.map((shard) => eventLog.lastOfEach({ shard, kind: 'sandbox' })));
  const states = found.flat().map(({ commit }) => commit.state as unknown as SandboxState);
  return new Set(states.filter(({ status }) => !ENDED_STATUSES.has(status)).flatMap(({ spec }) => spec.layers));
};
