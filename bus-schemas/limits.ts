/** Every bound of the contract, with where the number comes from. */

export const ID_LIMITS = {
  /** Longest project or edge name: keeps the longest subject below 200 bytes. */
  nameLength: 40,
  sandboxIdLength: 70,
  clientKeyLength: 200,
  imageNameLength: 200,
  snapshotIdLength: 64,
  /** Names of nodes that are kept to be shared: some units of 160. */
  edgeNamesKept: 4_096,
} as const;

export const WIRE_LIMITS = {
  /** nats-server's default `max_payload`; one byte more closes the shared connection, so we stop well before. */
  maxPayloadBytes: 1_048_576,
  /** What a message may hold, body and headers: leaves 16 KiB for headers and protocol. */
  maxMessageBytes: 1_032_192,
  /** Data plane chunk. */
  maxChunkBytes: 262_144,
  /** Items of one packed create. */
  maxCreatesPerMessage: 256,
  /** Items of one group: the paper's largest job (@paper §1), 128 chunks below one parent. */
  maxCreatesPerGroup: 32_768,
  /** A create request's spec with labels and env: 256 of them share one state message with the assignments. */
  maxSpecBytes: 65_536,
  /** argv, env and inline stdin of one command: Linux allows 128 KiB per argument and this is their sum on the wire. */
  maxExecRequestBytes: 786_432,
} as const;

export const SPEC_LIMITS = {
  workspaces: 16,
  toolkits: 16,
  labels: 64,
  labelKeyLength: 63,
  labelValueLength: 255,
  envEntries: 256,
  envBytes: 32_768,
  pathBytes: 4_095,
  /** Linux: a single argument and its terminator are at most 131,072 bytes. */
  argumentBytes: 131_071,
  argumentCount: 4_096,
  memoryMiBMin: 4,
  memoryMiBMax: 4 * 1024 * 1024,
  cpuMillisMin: 10,
  cpuMillisMax: 1_024_000,
  pidsMin: 4,
  pidsMax: 1_000_000,
  /** The kernel's own range of `cpu.weight`. */
  cpuWeightMin: 1,
  cpuWeightMax: 10_000,
  /** An ext4 file system with room for a few files. */
  diskMiBMin: 16,
  /** Below the largest file of an ext4 host, 16 TiB. */
  diskMiBMax: 15 * 1024 * 1024,
  openFilesMin: 64,
  /** Linux: `fs.nr_open` unless somebody raised it. */
  openFilesMax: 1_048_576,
  lifeMsMin: 1_000,
  /** One week: longer lives are re-created from a snapshot. */
  lifeMsMax: 7 * 24 * 3_600_000,
} as const;

export const SNAPSHOT_LIMITS = {
  /** packer/limits.h: what one scrub may hold. */
  rules: 256,
  ruleBytes: 1_024,
  ruleParts: 32,
  /** Removed paths told one by one: they travel in one commit. */
  removedTold: 100,
  /** Layers of one stack: launcher/limits.h. */
  stackLayers: 64,
  /** Snapshots of one page of a list. */
  page: 500,
} as const;

export const KEY_LIMITS = {
  /** How long a client key keeps naming its request; afterwards `KEY_EXPIRED` until the tombstone goes too. */
  requestKeyLifetimeMs: 24 * 3_600_000,
  /** Tombstones outlive the key and the audit retention. */
  tombstoneTtlMs: 72 * 3_600_000,
} as const;

export const EXEC_LIMITS = {
  /** Output kept per stream when the caller names no cap. */
  outputBytesDefault: 16 * 1024 * 1024,
  outputBytesMax: 4 * 1024 * 1024 * 1024,
  /** Output carried inside the answer of one `exec` or `wait`, per stream; the rest is read by offset. */
  inlineOutputBytes: 128 * 1024,
  /** One long poll; the client asks again. Shorter than every time-out on the way. */
  longPollMs: 20_000,
  timeoutMsMax: 7 * 24 * 3_600_000,
  /** The kernel keeps 16 bits of a terminal's rows and columns. */
  terminalLinesMax: 65_535,
  /** A reader's credit on a stream ends this long after its last word. */
  creditMs: 15_000,
  /** How long a full log waits for a first reader: from the command's start, and again from the return of its Edge. */
  firstCreditMs: 30_000,
  /** Output of an ended command is kept this long, and its result as long as the sandbox's record; then OUTPUT_EXPIRED. */
  outputRetentionMs: 3_600_000,
  /** Beyond this much kept output of ended commands in one sandbox, the oldest goes early. */
  outputKeptBytes: 1024 * 1024 * 1024,
  /** Commands known per sandbox before the oldest finished ones are forgotten. */
  journalEntries: 100_000,
} as const;

export const RECORD_LIMITS = {
  /** Output kept of each stream of a recorded command: two of them as base64, with their frame, are a sixth of a message. */
  outputBytes: 65_536,
  /** Records of one sandbox, two for each command; beyond it the oldest go. Some thousand steps of an episode, with room. */
  perSandbox: 16_384,
  /** As long as the longest life of a sandbox: a record that nobody can need any more goes by itself. */
  keptMs: 7 * 24 * 3_600_000,
} as const;

export const FILE_LIMITS = {
  /** One long poll of a stream; the client asks again. */
  longPollMs: 20_000,
  /** A session of which nothing is asked for this long is closed. */
  sessionIdleMs: 60_000,
} as const;

export const PORT_LIMITS = {
  /** One long poll; the client asks again. */
  longPollMs: 20_000,
  /** `sun_path` with its terminator is 108 bytes. */
  socketPathBytes: 107,
  pathLength: 16_384,
  /** Node's HTTP parser takes 16 KiB of headers by default; four times that, in at most so many lines. */
  headerBytes: 65_536,
  headerCount: 200,
  /** An exchange of which nothing is asked for this long is ended. */
  idleMs: 60_000,
  /** Bytes of an answer that are held for a client which has not confirmed them: four chunks under way. */
  windowBytes: 1_048_576,
  /** Exchanges of one sandbox at once. */
  exchanges: 128,
} as const;

export const JOB_LIMITS = {
  holderLength: 100,
  /** Below this an owner loses its lease to one slow garbage collection or one bus leader election (5–8 s). */
  leaseMsMin: 2_000,
  leaseMsMax: 3_600_000,
  graceMsMax: 24 * 3_600_000,
  lifeMsMin: 1_000,
  /** As long as a sandbox's longest life: a job of which no member may live has no use. */
  lifeMsMax: 7 * 24 * 3_600_000,
} as const;

export const API_LIMITS = {
  /** States of a few kilobytes each: a page stays well below one message. */
  jobsPerPage: 200,
  /** Summaries of some 300 bytes each. */
  rolloutsPerPage: 2_000,
  /** Specs of up to a few kilobytes each travel together. */
  rolloutsPerCall: 100,
  /** Sandboxes of one command to many: as many as a packed create has; each answer has some 200 bytes. */
  manyPerPage: 256,
} as const;

export const ROLLOUT_LIMITS = {
  taskBytes: 65_536,
  /** Request and answer of the open turn lie together in one commit beside the rest of the state. */
  turnBytes: 393_216,
  resultBytes: 65_536,
  /** Agent sandboxes beside the worker. */
  sandboxes: 8,
  groupLength: 200,
  stepCommandBytes: 1_024,
  /** Output of one step, per stream, that a worker is given; the whole lies in the sandbox's log. */
  stepOutputBytes: 65_536,
  /** Kept of the worker's own output: its requests of a long episode. */
  workerOutputBytes: 268_435_456,
  /** Steps told in one commit; at some 2 KiB each they leave the open turn its room. */
  stepsPerCommit: 64,
} as const;
