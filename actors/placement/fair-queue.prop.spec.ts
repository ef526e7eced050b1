/** Whatever is queued: nobody waits behind another's burst, nothing is lost, and nobody has more than its share under way. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ProjectName } from '#bus/ids.ts';
import { FairQueue } from './fair-queue.ts';

const A = 'burst' as ProjectName;
const B = 'single' as ProjectName;
const limits = { inFlight: 8, inFlightPerProject: 3 };

test('a single create behind a burst of 32,000 is the next but one that is begun', () => {
  const queue = new FairQueue<number>(limits);
  for (let n = 0; n < 32_000; n += 1) queue.push(A, n);
  for (let n = 0; n < 3; n += 1) expect(queue.take()?.project).toBe(A);
  queue.push(B, 0);
  expect([queue.take()?.project, queue.take()?.project].includes(B)).toBe(true);
  expect(queue.waitingOf(A)).toBeGreaterThan(31_990);
});

test('a project alone does not take the place that others will need', () => {
  const queue = new FairQueue<number>(limits);
  for (let n = 0; n < 100; n += 1) queue.push(A, n);
  let taken = 0;
  while (queue.take()) taken += 1;
  expect(taken).toBe(limits.inFlight - limits.inFlightPerProject);
  queue.push(B, 0);
  expect(queue.take()).toEqual({ project: B, work: 0 });
});

const step = fc.oneof(
  fc.record({ do: fc.constant('push' as const), project: fc.constantFrom('a', 'b', 'c', 'd') }),
  fc.record({ do: fc.constantFrom('take' as const, 'done' as const), project: fc.constant('') }),
);
test('INV-FAIR: in turns, in each project’s own order, within the limits, and everything is served in the end', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new FairQueue<string>(limits);
      const running: ProjectName[] = [];
      const served = new Map<string, number[]>();
      /** By project that waits: how often each other one was served since it began to wait. */
      const passed = new Map<string, Map<string, number>>();
      let pushed = 0;
      const take = (): boolean => {
        const next = queue.take();
        if (!next) return false;
        running.push(next.project);
        served.set(next.project, [...(served.get(next.project) ?? []), Number(next.work)]);
        for (const [waiting, counts] of passed) {
          if (waiting === next.project || queue.runningOf(waiting as ProjectName) >= limits.inFlightPerProject) continue;
          counts.set(next.project, (counts.get(next.project) ?? 0) + 1);
          expect(counts.get(next.project)).toBeLessThanOrEqual(1);
        }
        passed.delete(next.project);
        if (queue.waitingOf(next.project) > 0) passed.set(next.project, new Map());
        expect(running.length).toBeLessThanOrEqual(limits.inFlight);
        return true;
      };
      for (const { do: what, project } of steps) {
        if (what === 'push') {
          queue.push(project as ProjectName, String(pushed++));
          if (!passed.has(project)) passed.set(project, new Map());
        } else if (what === 'take') take();
        else if (running[0]) queue.done(running.shift() as ProjectName);
      }
      for (;;) {
        if (take()) continue;
        const next = running.shift();
        if (!next) break;
        queue.done(next);
      }
      expect([...served.values()].flat()).toHaveLength(pushed);
      for (const works of served.values()) expect(works).toEqual([...works].sort((a, b) => a - b));
    }),
  );
});
