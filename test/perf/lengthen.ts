/** Long histories for benchmarks, written straight to the log: every commit leaves the state as the living actor knows it. */
import type { Commit } from '#bus/envelope.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import { connectBus } from '#runtime/bus/connect.ts';
import { createLog } from '#runtime/log/log.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { inFlight } from './harness.ts';

/** Actors that are written to at once. */
const AT_ONCE = 256;

/** Appends `commits` commits of the one event that `eventOf` makes of an actor's newest commit. */
export const lengthen = async (
  test: TestPlatform,
  actors: readonly ActorAddress[],
  commits: number,
  eventOf: (newest: Commit) => Commit['events'][number],
): Promise<void> => {
  const { servers, keys } = test.platform.bus;
  const connection = await connectBus({ servers, credentials: keys.roles.operator }, 'bench', createLog('bench', 'error'));
  try {
    const { eventLog } = connectJetStream(connection);
    await inFlight(AT_ONCE, actors.length, async (n) => {
      const newest = await eventLog.last(actors[n]!);
      if (!newest) throw new Error(`${actors[n]!.id} has no commit`);
      let { sequence, commit } = newest;
      const event = eventOf(commit);
      for (let i = 0; i < commits; i += 1) {
        commit = { ...commit, version: commit.version + 1, commandId: `bench:${n}:${commit.version}`, events: [event] };
        const outcome = await eventLog.append({ address: newest.address, commit, expectedSequence: sequence, messageId: `bench:${n}:${commit.version}` });
        if (outcome.outcome !== 'applied') throw new Error(`append: ${outcome.error.code}`);
        sequence = outcome.sequence;
      }
    });
  } finally {
    await connection.close();
  }
};
