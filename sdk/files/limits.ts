/** Bounds of the files half of the SDK, with where the numbers come from. */
import { WIRE_LIMITS } from '#bus/limits.ts';

export const SDK_FILE_LIMITS = {
  chunkBytes: WIRE_LIMITS.maxChunkBytes,
  /** Chunks of one stream on their way: what the other side's window holds. */
  chunksInFlight: 8,
  /** `read` keeps its result in memory; beyond this a stream is the better way. */
  readBytesDefault: 1024 * 1024 * 1024,
  /** One attempt to hand over a chunk: longer than a slow disk holds it up as a rule; a repeated one is known and skipped. */
  pushAttemptMs: 4_000,
  /** One wait for bytes of a stream; asked again when none came, sooner than a restarted node would be missed for long. */
  pullWaitMs: 5_000,
  /** A commit or the removal of a tree as a whole. */
  slowCallMs: 600_000,
  /** One message of a program that packs or unpacks, with a name in it as long as a path may be, written as octal numbers; and all that is repeated of why it failed. */
  programErrorBytes: 4 * 4_096 + 256,
  /** Things that a local program did not carry and that are named; the others are counted. As many as a node names. */
  namedOmissions: 1_000,
  /** Holes of a local file are looked for in blocks of this size. */
  blockBytes: 4_096,
} as const;
