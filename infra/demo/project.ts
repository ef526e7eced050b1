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
