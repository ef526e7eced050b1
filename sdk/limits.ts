/** Every bound and pause of the SDK, with where the number comes from. */
export const SDK_LIMITS = {
  /** First connect: long enough for a platform that is just starting, short enough for a wrong address. */
  /** One try to sign in: a server that reads its configuration anew may leave one without an answer. Less than a server waits for IAM (2 s). */
  signInTimeoutMs: 1_500,
  /** A server says who it is as soon as it is spoken to. */
  greetingTimeoutMs: 1_000,
  connectTimeoutMs: 5_000,
  /** Reconnects are tried for ever; an embedded server is back within a second. */
  reconnectWaitMs: 100,
  reconnectJitterMs: 100,
  /** A half-open TCP connection is noticed after two missed pings. */
  pingIntervalMs: 10_000,
  /** Requests without an answer at one time; beyond it the caller is told OVERLOADED instead of filling memory. */
  requestsInFlight: 16_384,
  /** How long the end of a subscription waits for a request to travel with. Nothing of what comes meanwhile is handed on. */
  unsubscribeLingerMs: 20,

  /** One attempt of a call that the other side answers at once. Doubles twice when attempts time out. */
  attemptTimeoutMs: 1_500,
  /** One attempt of a life-cycle command: the apiserver waits 5 s for the Edge's decision before it answers `pending`. */
  decisionTimeoutMs: 7_000,
  /** One attempt of a fork: the apiserver waits 5 s for the Edge's decision and 5 s for the capture. */
  forkTimeoutMs: 12_000,
  /** One attempt of a list: the apiserver waits up to 10 s for its projection to reach what the client has seen. */
  listTimeoutMs: 12_000,
  /** A control-plane call as a whole, when the caller names no time. */
  callTimeoutMs: 30_000,
  /** How long the owner of a sandbox may stay silent before a data-plane call gives up: an Edge restart takes seconds. */
  outageMs: 60_000,
  /** A caller who asked for it hears so soon, and then so often, that a call of his waits for somebody who does not answer. */
  waitNoticeFirstMs: 2_000,
  waitNoticeEveryMs: 10_000,
  /** Who has no answer from a sandbox for this long asks whether it was lost with its Edge. */
  lossAskMs: 2_000,
  retryFirstMs: 20,
  /** What a restart of the other side may be noticed late by. */
  retryMaxMs: 250,
  /** Longest pause that an overloaded platform may ask for. */
  retryAfterMaxMs: 10_000,

  /** Long polls of the data plane grow from the first to the last: a poll that died with its Edge is asked again after it. */
  longPollFirstMs: 1_000,
  longPollLastMs: 5_000,
  /** What a long poll's answer may be late by before it is asked for again, which is harmless. */
  longPollSlackMs: 750,

  /** A create as a whole, when the caller names no time (the contract's default). */
  createTimeoutMs: 120_000,
  createTimeoutMsMax: 24 * 3_600_000,
  /** Core messages may be lost: items without news are asked for, first soon, then ever more slowly. */
  catchUpFirstOneMs: 40,
  /** A single create is asked for after so many times what those before it took: asking while everything is slow makes it slower. */
  catchUpPatience: 3,
  catchUpFirstManyMs: 250,
  catchUpGrowth: 4,
  catchUpEveryMs: 1_000,
  catchUpSlowestMs: 2_000,
  /** States per `get`: 64 of them with ordinary specs stay far below one message; halved when they do not. */
  statesPerGet: 64,
  /** Above this many items one wildcard subscription per Edge is cheaper than one per sandbox. */
  exactSubscriptions: 8,
  /** Chunks of a group that are asked for at one time. */
  chunksAsked: 8,
  /** Thousands that are paused at once wait for each other's memory to be given back. */
  manyTimeoutMs: 300_000,
  /** Life-cycle commands of a group under way at one time. */
  groupCommandsInFlight: 64,

  /** A stop, pause, resume or snapshot as a whole, when the caller names no time. */
  transitionTimeoutMs: 60_000,
  /** Live commits that one `events()` reader may lag behind before it goes back to reading pages. */
  eventsBuffered: 256,

  /** Live commits that a watch may lag behind before it reads what it missed from the lists. */
  watchBuffered: 4_096,
  /** Sandboxes whose newest version a watch remembers: many times a project's live ones. */
  watchKnown: 131_072,
  watchPage: 200,
  /** Losses that leave no gap are found after this long. */
  watchCatchUpMs: 15_000,

  /** Output kept of one script in a shell session, per stream, when the caller names no limit. */
  shellOutputBytes: 16 * 1024 * 1024,
  /** A script that is to end is told so this often, with a pause between; then its shell is ended. */
  shellBreakTries: 20,
  shellBreakPauseMs: 100,

  /** A connection to a server inside, from the call to its bytes. */
  dialTimeoutMs: 30_000,

  /** Answers of `read` asked for ahead of the reader. */
  readAhead: 4,
  /** Pauses between offers of stdin that nothing was taken of. */
  stdinRetryFirstMs: 10,
  stdinRetryMaxMs: 250,
  /** Bytes that one stdin writer may hold before `write` waits: two chunks. */
  stdinChunkBytes: 262_144,
} as const;
