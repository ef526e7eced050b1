import { expect, test } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import { ManualClock } from '#adapters/memory/mod.ts';
import { WaitingCreates } from './waiting-creates.ts';

const A = 'burst' as ProjectName;
const B = 'single' as ProjectName;
const open = () => {
  const clock = new ManualClock(0);
  return { clock, waiting: new WaitingCreates({ perProject: 3, perLane: 5, retryAfterMs: 500, forgottenMs: 30_000 }, clock) };
};
const refusal = (work: () => void): DsecError => {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof DsecError) return thrown;
  }
  return expect.fail('it was let in');
};

test('a full project is told when to come again; another one of the same lane is let in', () => {
  const { waiting } = open();
  for (let n = 0; n < 3; n += 1) waiting.enter(`a-${n}`, A, 0);
  const error = refusal(() => waiting.enter('a-3', A, 0));
  expect(error).toMatchObject({ code: 'OVERLOADED', outcome: 'not_applied', details: { retryAfterMs: 500, queue: 'project', limit: 3 } });
  waiting.enter('b-0', B, 0);
  waiting.enter('a-0', A, 0); // a repetition takes no second place
  expect(waiting.waitingOf(A)).toBe(3);
});

test('a full lane refuses every project of it, and no other lane', () => {
  const { waiting } = open();
  for (let n = 0; n < 5; n += 1) waiting.enter(`${n}`, `p-${n}` as ProjectName, 0);
  expect(refusal(() => waiting.enter('x', B, 0)).details).toMatchObject({ queue: 'lane', limit: 5 });
  waiting.enter('x', B, 1);
});

test('whose turn has come leaves, and so does one of which nothing is heard', () => {
  const { waiting, clock } = open();
  for (let n = 0; n < 3; n += 1) waiting.enter(`a-${n}`, A, 0);
  waiting.leave('a-1');
  waiting.leave('a-1');
  waiting.leave('never-there');
  waiting.enter('a-3', A, 0);
  clock.advance(30_000);
  waiting.enter('a-4', A, 0);
  expect(waiting.waitingOf(A)).toBe(1);
});

test('the first commit of a request tells that its create waits no longer; no other commit does', () => {
  const { waiting } = open();
  for (let n = 0; n < 3; n += 1) waiting.enter(`a-${n}`, A, 0);
  waiting.heard({ kind: 'sandbox', version: 1, commandId: 'a-0' });
  waiting.heard({ kind: 'request', version: 2, commandId: 'a-0' });
  expect(waiting.waitingOf(A)).toBe(3);
  waiting.heard({ kind: 'request', version: 1, commandId: 'a-0' });
  waiting.heard({ kind: 'request', version: 1, commandId: 'a-0' }); // read again
  waiting.heard({ kind: 'request', version: 1, commandId: 'of another apiserver' });
  expect(waiting.waitingOf(A)).toBe(2);
});
