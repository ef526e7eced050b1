/**
 * A process that does nothing but feed a projection from a real bus, to be killed by a test at any moment.
 * Arguments: server, shard, file. Prints a line for each transaction.
 */
import { connect } from '@nats-io/transport-node';
import type { Shard } from '#bus/ids.ts';
import { busConnectionOptions, connectJetStream } from '#adapters/jetstream/mod.ts';
import { runProjection, SandboxProjection } from '#adapters/sqlite/mod.ts';

const [server = '', shard = '', path = ''] = process.argv.slice(2);
const bus = connectJetStream(await connect(busConnectionOptions(server, 'projection-child')));
const projection = SandboxProjection.open(path);
const apply = projection.apply.bind(projection);
projection.apply = (...batch) => {
  process.stdout.write(`begins ${batch[1].length}\n`);
  const unreadable = apply(...batch);
  process.stdout.write(`folded ${projection.asOf()[shard]}\n`);
  return unreadable;
};
await runProjection({ projection, eventLog: bus.eventLog, shards: [shard as Shard], onError: (error) => process.stderr.write(`${String(error)}\n`) });
