/** The reference of the control plane: commits of the same size and with the same checks, published onto the same stream by one process that does nothing else. */
import { connect } from '@nats-io/transport-node';
import type { ProjectName, Shard } from '#bus/ids.ts';
import { busConnectionOptions, connectJetStream } from '#adapters/jetstream/mod.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import { inFlight } from './harness.ts';

/** What a sandbox's commits weigh. */
const PAD = 'x'.repeat(1_600);
const OUTSTANDING = 512;

/** Commits per second. */
export const bareStream = async (servers: readonly string[], shards: readonly Shard[], commits: number): Promise<number> => {
  const nc = await connect(busConnectionOptions([...servers], 'bench-bare'));
  const { eventLog, close } = connectJetStream(nc);
  const run = `${process.pid}-${Math.round(performance.now())}`;
  let n = 0;
  const startedAt = performance.now();
  await inFlight(OUTSTANDING, commits, async () => {
    const mine = n++;
    const address = anAddress(shards[mine % shards.length] as Shard, `sb-bare-${run}-${mine}`, { project: 'bare' as ProjectName, kind: 'environment' }); // a kind that nobody folds
    const outcome = await eventLog.append(anAppend(address, 1, 0, 'w', { pad: PAD }));
    if (outcome.outcome !== 'applied') throw new Error(outcome.error.message);
  });
  const perSecond = (commits * 1_000) / (performance.now() - startedAt);
  close();
  await nc.close();
  return perSecond;
};
