import { expect, test } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import { LogReading } from './log-reading.ts';
import { OPS_LIMITS } from './limits.ts';

const SHARD = '0' as Shard;

const world = () => {
  let now = 0;
  let end = 0;
  const reading = new LogReading(() => now);
  const one = reading.begin(SHARD, 1);
  return {
    look: () => reading.look({ bounds: async () => ({ firstSequence: 1, lastSequence: end, createdAt: '' }) }, [SHARD]),
    grow: (to: number) => {
      end = to;
    },
    pass: (ms: number) => {
      now += ms;
    },
    ...one,
  };
};

test('is behind when it stands still for long, or is far away; not while it goes on, nor for a few', async () => {
  const w = world();
  w.grow(OPS_LIMITS.readingStillCommits + 2);
  expect(await w.look()).toBeNull();
  w.pass(OPS_LIMITS.readingStillMs + 1);
  expect(await w.look()).toMatch(/stands still in shard 0/);
  w.moved(1);
  expect(await w.look()).toBeNull();
  w.pass(OPS_LIMITS.readingStillMs + 1);
  w.moved(2);
  expect(await w.look()).toBeNull();
  w.pass(OPS_LIMITS.readingStillMs + 1);
  expect(await w.look()).toBeNull(); // so few may be what nobody can read
  w.grow(OPS_LIMITS.readingLagCommits + 3);
  w.moved(2);
  expect(await w.look()).toMatch(/commits before its end/);
  w.end();
  expect(await w.look()).toBeNull();
});
