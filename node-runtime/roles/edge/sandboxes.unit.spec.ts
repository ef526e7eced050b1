/** What an Edge does with a log that a newer version has written: nothing, and it says why. */
import { expect, test } from 'vitest';
import type { EdgeName, Shard } from '#bus/ids.ts';
import type { MiB } from '#bus/units.ts';
import { MemoryEventLog, ManualClock } from '#adapters/memory/mod.ts';
import { anAddress, aCommit } from '#test/helpers/commits.ts';
import { aSandboxState } from '#test/helpers/sandboxes.ts';
import { createLog } from '../../log/log.ts';
import { Admission } from '#actors/edge/admission.ts';
import { Settlements } from './settlements.ts';
import { Sandboxes, type SandboxesOptions } from './sandboxes.ts';

const SHARD = '0' as Shard;
const EDGE = 'edge-a' as EdgeName;

/** An Edge whose node must not be touched. */
const edgeOver = (over: { schema?: number; events?: { type: string }[] }): Sandboxes => {
  const clock = new ManualClock(1_700_000_000_000);
  const eventLog = new MemoryEventLog({ shards: [SHARD], clock });
  const state = aSandboxState(1, { edge: EDGE });
  const address = anAddress(SHARD, state.id);
  const commit = { ...aCommit(address, 2, state as unknown as Record<string, unknown>), state, ...over };
  eventLog.inject(address, Buffer.from(JSON.stringify(commit)));
  const untouchable = new Proxy({}, { get: (_, name) => () => expect.unreachable(`the node was asked to ${String(name)}`) }) as SandboxesOptions['node'];
  const node = { backend: untouchable as never, images: untouchable as never };
  const capacity = { sandboxes: 10, memoryMiB: 10_000 as MiB, cpuMillis: 10_000, pids: 10_000, diskMiB: 0, descriptors: 1_000 } as ConstructorParameters<
    typeof Admission
  >[0];
  return new Sandboxes({
    edge: EDGE,
    shards: [SHARD],
    loss: { name: 'n1' as EdgeName, lostGeneration: 0, lostAt: null },
    fenced: () => false,
    generation: 1,
    eventLog,
    admission: new Admission(capacity),
    node,
    clock,
    log: createLog('test', 'silent'),
    settlements: new Settlements(),
  });
};

test.each([
  ['an event that it does not know', { events: [{ type: 'SandboxTeleported' }] }, /SandboxTeleported.*start the version that wrote it/],
  ['records of a later version', { schema: 99, events: [{ type: 'SandboxStarted' }] }, /version 99/],
])('%s: it stops, naming sandbox and event, before it touches anything', async (_, over, message) => {
  await expect(edgeOver(over).rehydrate()).rejects.toMatchObject({
    code: 'UNSUPPORTED_VERSION',
    message: expect.stringMatching(message),
    details: { actorId: aSandboxState(1, { edge: EDGE }).id },
  });
});
