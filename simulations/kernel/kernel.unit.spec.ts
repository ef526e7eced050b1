import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NodeClock } from './clock.ts';
import { firstDifference } from './first-difference.ts';
import { TaskHeap } from './heap.ts';
import { Random } from './random.ts';
import { Trace } from './trace.ts';
import { Tripwire, withTripwires } from './tripwires.ts';
import { VirtualTime } from './virtual-time.ts';

const timeOf = (seed = 1, tiebreak: 'fifo' | 'random' = 'fifo', trace = new Trace()) => new VirtualTime(trace, Random.fromSeed(seed), tiebreak);

describe('heap', () => {
  test('gives back by due, tiebreak and order of arrival, whatever was called off and swept out', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ due: fc.nat(20), tie: fc.nat(2), off: fc.boolean() })), fc.boolean(), (entries, sweeps) => {
        const heap = new TaskHeap();
        const tasks = entries.map(({ due, tie }, i) => {
          const task = { label: String(i), run: () => {} };
          heap.push(due, tie, task);
          return task as { label: string; run: (() => void) | null };
        });
        for (const [i, { off }] of entries.entries()) if (off) tasks[i]!.run = null;
        if (sweeps) heap.sweep();
        const got: number[] = [];
        for (let task = heap.pop(); task; task = heap.pop()) if (task.run) got.push(Number(task.label));
        const expected = entries
          .map((entry, i) => ({ ...entry, i }))
          .filter(({ off }) => !off)
          .sort((a, b) => a.due - b.due || a.tie - b.tie || a.i - b.i);
        expect(got).toEqual(expected.map(({ i }) => i));
      }),
    );
  });
});

describe('virtual time', () => {
  test('moves to what is due, runs what that schedules, and stops where it was told to', () => {
    const time = timeOf();
    const seen: string[] = [];
    time.after(20, 'b', () => seen.push(`b@${time.nowUs}`));
    time.after(10, 'a', () => {
      seen.push(`a@${time.nowUs}`);
      time.after(5, 'c', () => seen.push(`c@${time.nowUs}`));
    });
    expect(time.run(15)).toBe(true);
    expect(seen).toEqual(['a@10', 'c@15']);
    expect(time.run(100)).toBe(true);
    expect(seen).toEqual(['a@10', 'c@15', 'b@20']);
    expect(time.nowUs).toBe(100);
  });

  test('a task that was called off never runs, and the many that were leave the heap', () => {
    const time = timeOf();
    let ran = 0;
    const tasks = Array.from({ length: 10_000 }, (_, i) => time.after(1_000_000 + i, 'idle', () => ran++));
    for (const task of tasks.slice(1)) time.cancel(task);
    expect(time.pending).toBe(1);
    time.run(Number.POSITIVE_INFINITY);
    expect(ran).toBe(1);
    expect(time.steps).toBe(1);
  });

  test('ties come first-in first-out, or as the seed draws them, the same each time', () => {
    const orderOf = (seed: number, tiebreak: 'fifo' | 'random'): string => {
      const time = timeOf(seed, tiebreak);
      const seen: number[] = [];
      for (let i = 0; i < 8; i += 1) time.after(5, 'tie', () => seen.push(i));
      time.run(5);
      return seen.join('');
    };
    expect(orderOf(1, 'fifo')).toBe('01234567');
    expect(orderOf(1, 'random')).toBe(orderOf(1, 'random'));
    expect(new Set([1, 2, 3, 4].map((seed) => orderOf(seed, 'random'))).size).toBe(4);
  });

  test('a node with a fast clock reads later and wakes earlier', () => {
    const time = timeOf();
    const fast = new NodeClock(time, { skewMs: 500, driftPpm: 1_000 });
    let wokeAtUs = 0;
    fast.after(10_000, 'wake', () => {
      wokeAtUs = time.nowUs;
    });
    time.run(20_000_000);
    expect(wokeAtUs).toBeLessThan(10_000_000);
    expect(fast.monotonicMs()).toBe(20_020);
    expect(fast.now() - new NodeClock(time).now()).toBe(520);
  });
});

describe('chance', () => {
  test('a draw in one child leaves every other as it was', () => {
    const draws = (extra: boolean): number[] => {
      const root = Random.fromSeed(7);
      const other = root.child('other');
      if (extra) other.next();
      return Array.from({ length: 5 }, () => 0).map(() => root.child('mine').child('deep').next());
    };
    expect(draws(true)).toEqual(draws(false));
    expect(Random.fromSeed(7).child('a').next()).not.toBe(Random.fromSeed(7).child('b').next());
    expect(Random.fromSeed(7).child('a').next()).not.toBe(Random.fromSeed(8).child('a').next());
  });

  test('is even enough: mean, spread and normal within two per cent', () => {
    const random = Random.fromSeed(3);
    const n = 100_000;
    let [sum, ones, squares] = [0, 0, 0];
    for (let i = 0; i < n; i += 1) {
      sum += random.fraction();
      if (random.chance(250)) ones += 1;
      squares += random.normal() ** 2;
    }
    expect(Math.abs(sum / n - 0.5)).toBeLessThan(0.01);
    expect(Math.abs(ones / n - 0.25)).toBeLessThan(0.01);
    expect(Math.abs(squares / n - 1)).toBeLessThan(0.02);
  });
});

describe('tripwires', () => {
  test.each<[string, () => unknown]>([
    ['Date.now', () => Date.now()],
    ['new Date', () => new Date()],
    ['Math.random', () => Math.random()],
    ['performance.now', () => performance.now()],
    ['setTimeout', () => setTimeout(() => {}, 1)],
    ['queueMicrotask', () => queueMicrotask(() => {})],
    ['fetch', () => fetch('http://127.0.0.1')],
    ['randomUUID by name', () => randomUUID()],
    ['web crypto', () => crypto.getRandomValues(new Uint8Array(1))],
  ])('%s throws while a step runs, and works again after it', (_, use) => {
    const time = timeOf();
    time.after(1, 'reads', () => void use());
    expect(() => time.run(1)).toThrow(Tripwire);
    expect(Date.now()).toBeGreaterThan(0);
    expect(Math.random()).toBeLessThan(1);
    expect(randomUUID()).toHaveLength(36);
  });

  test('a date from a number is only arithmetic', () => {
    expect(withTripwires(() => new Date(0).toISOString())).toBe('1970-01-01T00:00:00.000Z');
  });
});

describe('first difference', () => {
  /** Counts down; parts from its twin at one step. */
  const rerun = (oddStep: number) => (trace: Trace) => {
    const time = timeOf(1, 'fifo', trace);
    let left = 5_000;
    const next = () => {
      left -= 1;
      if (left > 0) time.after(time.steps === oddStep ? 2 : 1, 'count', next);
    };
    time.after(1, 'count', next);
    time.run(Number.POSITIVE_INFINITY);
  };

  test('of equal runs there is none', () => expect(firstDifference(rerun(-1), rerun(-1))).toBeNull());
  test.each([1, 1_024, 3_333, 4_998])('is found after step %i', (step) => {
    expect(firstDifference(rerun(-1), rerun(step))).toMatchObject({ step: step + 1, left: expect.stringContaining('count') });
  });
});
