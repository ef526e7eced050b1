import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import type { Capacity } from '#bus/edge/schema.ts';
import type { ProjectName, SandboxId } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import { Admission } from './admission.ts';
import { ADMISSION_LIMITS } from './limits.ts';

const capacity = {
  sandboxes: 4,
  memoryMiB: 1_000,
  cpuMillis: 1_000 * ADMISSION_LIMITS.cpuOvercommit,
  pids: 1_000,
  diskMiB: 1_000,
  descriptors: 100,
} as Capacity;
const spec = (limits: { memoryMiB?: number; cpuMillis?: number; pids?: number; diskMiB?: number } = {}): SandboxSpec =>
  ({ limits: { memoryMiB: 100, cpuMillis: 100, pids: 10, diskMiB: null, openFiles: null, ...limits } }) as unknown as SandboxSpec;
const owner = 'acme' as ProjectName;
const other = 'rival' as ProjectName;
const apart = { ...spec(), isolation: 'requireApart' } as SandboxSpec;
const id = (n: number): SandboxId => `sb-0-${n.toString(16).padStart(20, '0')}-node` as SandboxId;

describe('Admission', () => {
  test('the same sandbox asked for twice holds one reservation and keeps its slot', () => {
    const admission = new Admission(capacity);
    const first = admission.admit(id(1), spec(), owner);
    expect(admission.admit(id(1), spec(), owner)).toEqual(first);
    expect(admission.used().sandboxes).toBe(1);
  });

  test.each([
    ['sandboxes', Array.from({ length: 4 }, () => spec()), spec()],
    ['memoryMiB', [spec({ memoryMiB: 950 })], spec({ memoryMiB: 51 })],
    ['pids', [spec({ pids: 995 })], spec({ pids: 10 })],
    ['diskMiB', [spec({ diskMiB: 900 }), spec()], spec({ diskMiB: 101 })],
    ['cpuMillis', [spec({ cpuMillis: 1_000 })], spec({ cpuMillis: 1_001 })],
  ])('says that %s is what lacks', (dimension, before, asked) => {
    const admission = new Admission(capacity);
    for (const [n, one] of before.entries()) expect(admission.admit(id(n), one, owner).ok).toBe(true);
    const refused = admission.admit(id(99), asked, owner);
    expect(refused).toMatchObject({ ok: false, error: { code: 'NODE_FULL', details: { dimension } } });
  });

  test('what never fits is not worth a retry, what fits later is', () => {
    const admission = new Admission(capacity);
    expect(admission.admit(id(1), spec({ memoryMiB: 2_000 }), owner)).toMatchObject({ error: { retry: 'never' } });
    admission.admit(id(2), spec({ memoryMiB: 1_000 }), owner);
    expect(admission.admit(id(3), spec({ memoryMiB: 100 }), owner)).toMatchObject({ error: { retry: 'later' } });
  });

  test('more open files than a process of this node may have never fit', () => {
    const admission = new Admission(capacity, 20_000);
    const asks = (openFiles: number) => admission.admit(id(openFiles), { limits: { ...spec().limits, openFiles } } as unknown as SandboxSpec, owner);
    expect(asks(20_001)).toMatchObject({ ok: false, error: { code: 'NODE_FULL', retry: 'never', details: { dimension: 'openFiles' } } });
    expect(asks(20_000).ok).toBe(true);
  });

  test('INV-CAP: over any order of admits and releases the sums stay within the capacity, slots stay unique, all comes back', () => {
    const step = fc.record({
      n: fc.nat(7),
      release: fc.boolean(),
      memoryMiB: fc.integer({ min: 1, max: 600 }),
      pids: fc.integer({ min: 1, max: 600 }),
      diskMiB: fc.integer({ min: 1, max: 600 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const admission = new Admission(capacity);
        const slots = new Map<number, number>();
        for (const { n, release, memoryMiB, pids, diskMiB } of steps) {
          if (release) {
            admission.release(id(n));
            slots.delete(n);
          } else {
            const admitted = admission.admit(id(n), spec({ memoryMiB, pids, diskMiB }), owner);
            if (admitted.ok) slots.set(n, admitted.slot);
          }
          const used = admission.used();
          for (const dimension of ['sandboxes', 'memoryMiB', 'cpuMillis', 'pids', 'diskMiB'] as const)
            expect(used[dimension]).toBeLessThanOrEqual(capacity[dimension]);
          expect(new Set(slots.values()).size).toBe(slots.size);
        }
        for (let n = 0; n < 8; n += 1) admission.release(id(n));
        expect(admission.used()).toEqual({ sandboxes: 0, memoryMiB: 0, cpuMillis: 0, pids: 0, diskMiB: 0, descriptors: 0 });
      }),
    );
  });

  test('what the log says lives is counted even beyond the capacity, and keeps others out', () => {
    const admission = new Admission(capacity);
    admission.restore(id(1), spec({ memoryMiB: 5_000 }), 17, owner);
    expect(admission.used().memoryMiB).toBe(5_000);
    expect(admission.admit(id(1), spec(), owner)).toEqual({ ok: true, slot: 17 });
    expect(admission.admit(id(2), spec(), owner).ok).toBe(false);
    admission.release(id(1));
    expect(admission.admit(id(2), spec(), owner).ok).toBe(true);
  });

  test('who must be apart is refused beside others, and keeps others away until the last of it has ended', () => {
    const admission = new Admission(capacity);
    admission.admit(id(1), spec(), other);
    expect(admission.admit(id(2), apart, owner)).toMatchObject({ ok: false, error: { code: 'NODE_FULL', details: { dimension: 'isolation' } } });
    expect(admission.tenancy()).toEqual({ running: { rival: 1 }, reservedFor: null });
    admission.release(id(1));
    expect(admission.admit(id(2), apart, owner).ok).toBe(true);
    expect(admission.tenancy()).toEqual({ running: { acme: 1 }, reservedFor: owner });
    expect(admission.admit(id(3), spec(), other).ok).toBe(false);
    expect(admission.admit(id(3), spec(), owner).ok).toBe(true);
    admission.release(id(2));
    expect(admission.admit(id(4), spec(), other).ok).toBe(true);
  });
});
