/**
 * Test kinds by file name, in three groups, one after another. Unit and property tests compute: as many at a time as there are cores.
 * All others mostly wait, for servers, leases and processes that start: one more than that, longest kinds first. Those whose subject is the
 * whole machine, or time, go one by one and beside none of the others (`npm test` lets what computes run beside them, and give way).
 */
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const kinds = (...names: string[]): string[] => names.map((name) => `**/*.${name}.spec.ts`);
const exclude = [...configDefaults.exclude, '.cache/**', 'build/**'];

/** At least two, so that one who waits does not hold up all; at most four, for the memory that so many platforms take. */
const CORES = Math.min(4, Math.max(2, availableParallelism()));

/** Whose subject belongs to the whole machine. */
const ALONE = [
  // swap: pages of one platform go to the device of another, and come back when that ends
  'test/kernel/launcher-reclaim.kernel.spec.ts',
  'test/e2e/pause.e2e.spec.ts',
  'test/e2e/pause-refused.e2e.spec.ts',
  'test/e2e/pause-inside.e2e.spec.ts',
  'test/chaos/pause-kills.chaos.spec.ts',
  // time itself: lives of a few seconds, which end when they are to
  'test/e2e/lives.e2e.spec.ts',
  'test/chaos/timers.chaos.spec.ts',
  // control groups that are new
  'infra/tools/leaks.int.spec.ts',
  'infra/tools/undertaker.e2e.spec.ts',
  // what the kernel counts per user of the host: sandboxes of two platforms are the same users
  'test/kernel/security/exhaustion.kernel.spec.ts',
  // the kernel's log, which is the machine's: errors in it that others provoke would make its node look ill
  'test/e2e/operations.e2e.spec.ts',
];

const BY_LENGTH = ['chaos', 'e2e', 'kernel', 'contract', 'int', 'prop', 'unit'];
/** Long among their kind, though few lines. */
const LONG = /(debian\.kernel|event-log\.int|outages\.int|command-queue\.int)\.spec\.ts$/;
const rankOf = ({ moduleId }: TestSpecification): number => (LONG.test(moduleId) ? 1 : BY_LENGTH.indexOf(/\.(\w+)\.spec\.ts$/.exec(moduleId)?.[1] ?? ''));

/** What takes long begins first: when the files run out, what workers are still at is short. */
class LongestKindFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((one, other) => rankOf(one) - rankOf(other));
  }
}

export default defineConfig({
  test: {
    globalSetup: ['infra/tools/leaks.mjs'],
    sequence: { sequencer: LongestKindFirst },
    projects: [
      {
        extends: true,
        // files share what they import: reading it anew for each of a hundred costs more than the tests, and these keep no state
        test: { name: 'fast', include: kinds('unit', 'prop'), exclude, testTimeout: 60_000, isolate: false, maxWorkers: CORES, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: kinds('int', 'contract'),
          exclude: [...exclude, ...ALONE],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: CORES + 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'platform',
          include: kinds('kernel', 'e2e', 'chaos'),
          exclude: [...exclude, ...ALONE],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: CORES + 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ALONE,
          exclude,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
