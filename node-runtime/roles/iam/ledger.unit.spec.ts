/** The ledger goes on over what it cannot understand: nobody could borrow any more while it stood still. */
import { expect, test } from 'vitest';
import type { ProjectName, Shard } from '#bus/ids.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { ManualClock, MemoryEventLog } from '#adapters/memory/mod.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import { createLog } from '../../log/log.ts';
import { Ledger } from './ledger.ts';

const SHARD = '1' as Shard;
const acme = (id: string) => anAddress(SHARD, id, { project: 'acme' as ProjectName, kind: 'request' });

test('a commit whose state is none is passed over, at the start and later', async () => {
  const eventLog = new MemoryEventLog({ shards: [SHARD], clock: new ManualClock(1) });
  await eventLog.append(anAppend(acme('before'), 1, 0, 'w', { items: null }));
  const ledger = await Ledger.open({ eventLog, shards: [SHARD], clock: systemClock, log: createLog('test', 'silent'), onProject: () => {} });
  await eventLog.append(anAppend(acme('after'), 1, 0, 'w', { spec: null }));
  await eventLog.append(anAppend(acme('last'), 1, 0, 'w', {}));
  const ends = await ledger.ends();
  expect(ends).toEqual({ [SHARD]: 3 });
  await ledger.reach(ends);
  expect(ledger.fold.requests).toBe(0);
  await ledger.close();
});
