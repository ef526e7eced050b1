import { expect, test } from 'vitest';
import type { ProjectName, RequestId } from '#bus/ids.ts';
import { requestAddress } from '#bus/subjects.ts';
import { RECENT_LIMITS } from './limits.ts';
import { RecentRequests } from './recent.ts';

const address = (n: number) => requestAddress('alpha' as ProjectName, `rq-0-${n.toString(16).padStart(32, '0')}` as RequestId);
const id = (n: number) => address(n).id;

test('the oldest go when there are too many, and use makes one young again', () => {
  const recent = new RecentRequests();
  for (let n = 0; n < RECENT_LIMITS.requests; n += 1) recent.remember(address(n), 1);
  expect(recent.letGo(() => true)).toEqual([]);
  recent.remember(address(0), 1);
  recent.remember(address(RECENT_LIMITS.requests), 1);
  expect(recent.letGo(() => true)).toEqual([id(1)]);
});

test('large ones go sooner: what they tell of is bounded too, and each is counted as it was last', () => {
  const recent = new RecentRequests();
  const half = RECENT_LIMITS.items / 2;
  recent.remember(address(1), half);
  recent.remember(address(2), half);
  recent.remember(address(2), half); // once, however often it is used
  expect(recent.letGo(() => true)).toEqual([]);
  recent.remember(address(3), 1);
  expect(recent.letGo(() => true)).toEqual([id(1)]);
  expect(recent.letGo(() => true)).toEqual([]);
});

test('one that cannot be spared yet stays, and the next oldest goes in its place', () => {
  const recent = new RecentRequests();
  for (const n of [1, 2, 3]) recent.remember(address(n), RECENT_LIMITS.items / 2);
  expect(recent.letGo(({ id: asked }) => asked !== id(1))).toEqual([id(2)]);
  recent.remember(address(4), 1);
  expect(recent.letGo(() => true)).toEqual([id(1)]);
});
