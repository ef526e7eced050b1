export const IMAGE_LIMITS = {
  /** A sandbox's id range: user and group ids of a layer must lie below it, or they have no image inside. */
  idsPerSandbox: 65_536,
  /** Files of one image; the largest public development images hold about 1.5 million. */
  filesPerImage: 8_000_000,
  /** Directories read at once while a tree is checked: bounds descriptors. */
  parallelDirectories: 16,
  /** Files of one directory looked at together: bounds memory in directories of a million files. */
  parallelStats: 512,
  /** Bytes of a tool's standard error kept for the error message; tools say the reason last. */
  toolErrorBytes: 4_096,
  /** As much of it as the message itself repeats. */
  toolMessageCharacters: 600,
  /** One line of a tool's output; longer ones are cut. */
  toolLineBytes: 16_384,
  /** All output of a tool that answers in data (listings of indexes, JSON of a package client). */
  toolOutputBytes: 16 * 1024 * 1024,
  /** After an abort a tool may tidy up this long before it is killed. */
  toolGraceMs: 2_000,
  /** Between two tries at the lock of an image name that another process builds. */
  buildLockPollMs: 200,
  /** How long a build waits for another build of the same name; a root file system takes a minute or two. */
  buildLockWaitMs: 30 * 60_000,
  /** Longest prefix path, stripped components: those of a path. */
  prefixBytes: 1_024,
  stripComponentsMax: 64,
  /** Packages that may be added to a root file system. */
  includePackages: 500,
} as const;

export const CATALOG_LIMITS = {
  /** Names looked through for a suggestion, and names suggested. */
  scannedNames: 5_000,
  suggestions: 3,
} as const;

export const MOUNT_LIMITS = {
  /** Mounted images without a user: a job's images come back within minutes, and an idle mount costs some 100 KiB. */
  idleImages: 32,
  /** An idle image is unmounted after this at the latest. */
  idleMs: 10 * 60_000,
} as const;

export const GC_LIMITS = {
  /** A layer younger than this is never collected: its builder may not have named it yet. */
  graceMs: 60 * 60_000,
} as const;
