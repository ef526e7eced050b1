/** A command that the kernel killed for memory says so, also to a later Edge; one that was killed otherwise does not. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stand, startAether } from './aether-stand.ts';
import { ChronusUnderTest } from './chronus-under-test.ts';

let stand: Stand;
beforeAll(async () => {
  stand = await startAether({ memoryMiB: 48 });
});
afterAll(() => stand.stop());

test('out of memory is a reason of its own', async () => {
  const box = new ChronusUnderTest(stand);
  const asked = { state: 'ended', reason: 'signaled', signal: 'KILL', exitCode: 137, fault: 'agent' };
  const oom = { state: 'ended', reason: 'oom', fault: 'environment', retry: 'never', exitCode: 137 };
  expect((await box.exec('kill -KILL $$')).exec).toMatchObject(asked);
  expect((await box.exec(['tail', '/dev/zero'], { key: 'leader' })).exec).toMatchObject({ ...oom, signal: 'KILL' });
  expect((await box.exec('kill -KILL $$')).exec).toMatchObject(asked);
  expect((await box.exec('tail /dev/zero; exit $?', { key: 'child' })).exec).toMatchObject({ ...oom, signal: null });
  box.chronus.close();

  const later = new ChronusUnderTest(stand);
  expect((await later.exec(['tail', '/dev/zero'], { key: 'leader' })).exec).toMatchObject(oom);
  expect((await later.exec('kill -KILL $$')).exec).toMatchObject(asked);
  later.chronus.close();
});
