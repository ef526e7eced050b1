/** What every source of an image hands over: a tree on disk, ready to be packed. */
import type { Owners } from '../tools/mkfs.ts';

export type BuildStep = 'waiting' | 'fetching' | 'unpacking' | 'installing' | 'checking' | 'packing' | 'storing';

/** One thing worth showing; `detail` is a line for people. */
export type BuildProgress = { readonly step: BuildStep; readonly detail: string };

export type SourceContext = {
  /** Empty private directory, removed when the build ends. */
  readonly workDir: string;
  readonly owners: Owners;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress: (progress: BuildProgress) => void;
};

export type PreparedTree = {
  readonly root: string;
  /** Names the input for people, and for errors about the tree. */
  readonly description: string;
  /** The tree lies in `workDir`, so what is newer than the build was made by it. */
  readonly generated: boolean;
};
