import { expect, test } from 'vitest';
import type { Commit } from '#bus/envelope.ts';
import type { EdgeName, ProjectName, Shard } from '#bus/ids.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import { ManualClock, MemoryEventLog } from '#adapters/memory/mod.ts';
import { createLog } from '../log/log.ts';
import { startForgetting } from './forgetting.ts';

const shard = '0' as Shard;
const addressOf = (id: string): ActorAddress => ({ shard, project: 'p' as ProjectName, kind: 'sandbox', home: 'n' as EdgeName, id });
const commitOf = (id: string, endedAt: number | null): Commit =>
  ({
    v: 1,
    kind: 'sandbox',
    actorId: id,
    version: 1,
    at: 1,
    commandId: id,
    correlationId: id,
    principal: 'p',
    lastCommandSequence: 0,
    schema: 1,
    events: [{ type: 'E' }],
    state: { endedAt },
  }) as unknown as Commit;

test('forgets what is over long enough, keeps the living and the fresh, and a commit that comes meanwhile wins', async () => {
  const clock = new ManualClock(1_000);
  const eventLog = new MemoryEventLog({ shards: [shard], clock });
  const endings: [string, number | null][] = [
    ['live', null],
    ['fresh', 900],
    ['old', 100],
  ];
  for (const [id, endedAt] of endings) await eventLog.append({ address: addressOf(id), commit: commitOf(id, endedAt), expectedSequence: 0, messageId: id });
  const forgetting = startForgetting({
    eventLog,
    shards: [shard],
    actors: { kind: 'sandbox' },
    forgettableAt: ({ commit }) => {
      const { endedAt } = commit.state as { endedAt: number | null };
      return endedAt === null ? null : endedAt + 500;
    },
    clock,
    log: createLog('test', 'silent'),
  });
  expect(await forgetting.sweep()).toBe(1);
  expect(await eventLog.last(addressOf('old'))).toBeNull();
  expect(await eventLog.last(addressOf('fresh'))).not.toBeNull();
  expect(await eventLog.last(addressOf('live'))).not.toBeNull();
  expect(await forgetting.sweep()).toBe(0);
  forgetting.stop();
});
