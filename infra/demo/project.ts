/** The third-party project whose own test suite the demo runs, and the change that breaks it. */
import type { ImageSource } from '#runtime/images/mod.ts';

export type DemoProject = {
  readonly title: string;
  /** Where its source lies in a sandbox. */
  readonly directory: string;
  readonly source: ImageSource;
  /** Debian packages that the suite needs in the base layer. */
  readonly packages: readonly string[];
  /** Shell words that run the suite, from `directory`. */
  readonly testCommand: string;
  /** Shell words that break it, from `directory`. */
  readonly breakingChange: string;
  /** The line of the suite's output that sums it up. */
  readonly summary: RegExp;
};

const ROUNDS = 5;

/**
 * Mozilla's source-map library, in the last release whose package carries its whole test suite: 85 tests, plain Node, no
 * network. The change makes the base-64 VLQ codec shift by one bit too few, which ten tests notice.
 */
export const DEMO_PROJECT: DemoProject = {
  title: 'source-map 0.1.43',
  directory: '/workspace/source-map',
  source: { type: 'npm', name: 'source-map', version: '0.1.43', dependencies: 'production' },
  packages: ['nodejs'],
  testCommand: `sh -c 'for round in $(seq ${ROUNDS}); do node test/run-tests.js || exit $?; done'`,
  breakingChange: "sed -i 's/VLQ_BASE_SHIFT = 5;/VLQ_BASE_SHIFT = 4;/' lib/source-map/base64-vlq.js",
  summary: /\d+ \/ \d+ tests passed/,
};
