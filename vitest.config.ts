/**
 * Test kinds by file name. Unit, property and integration tests share the machine's cores; kernel and e2e tests own mounts, cgroups
 * and whole platforms, so they run one file after another, after the others.
 */
import { configDefaults, defineConfig } from 'vitest/config';

const kinds = (...names: string[]): string[] => names.map((name) => `**/*.${name}.spec.ts`);
const exclude = [...configDefaults.exclude, '.cache/**', 'build/**'];

export default defineConfig({
  test: {
    globalSetup: ['infra/tools/leaks.mjs'],
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        // files share what they import: reading it anew for each of a hundred costs more than the tests, and these keep no state
        test: { name: 'fast', include: kinds('unit', 'prop'), exclude, testTimeout: 60_000, isolate: false, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: { name: 'integration', include: kinds('int', 'contract'), exclude, testTimeout: 60_000, hookTimeout: 60_000, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: {
          name: 'kernel',
          include: kinds('kernel', 'e2e', 'chaos'),
          exclude,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
