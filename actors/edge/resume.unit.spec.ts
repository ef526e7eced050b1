import { expect, test } from 'vitest';
import type { EdgeName } from '#bus/ids.ts';
import { sandboxId } from '#test/helpers/sandboxes.ts';
import { ADMISSION_LIMITS } from './limits.ts';
import { refusalOfResume } from './resume.ts';

const floor = ADMISSION_LIMITS.resumeFloorMiB;
const on = (availableMemoryMiB: number) => ({ edge: 'node-1' as EdgeName, availableMemoryMiB, floorMiB: floor });

test('a sandbox goes on while the node has what it gave back, and a reserve', () => {
  expect(refusalOfResume(sandboxId(1), 200, on(200 + floor))).toBeNull();
  expect(refusalOfResume(sandboxId(1), null, on(floor))).toBeNull();
});

test('otherwise it is said what is lacking, and that it can be tried again', () => {
  expect(refusalOfResume(sandboxId(1), 200, on(199 + floor))).toMatchObject({
    code: 'NODE_FULL',
    retry: 'later',
    outcome: 'not_applied',
    details: { dimension: 'availableMemory', free: 199 + floor, needed: 200 + floor },
  });
});

test('creates stop before resumes do: what sandboxes that rest need is not given to new ones down to the last', () => {
  expect(floor).toBeLessThan(ADMISSION_LIMITS.memoryFloorMiB);
});
