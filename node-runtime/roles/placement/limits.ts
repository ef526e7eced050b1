import { QUOTA_HOLDER_LIMITS } from '#actors/project/limits.ts';

export const PLACEMENT_LIMITS = {
  /**
   * Deliveries of one lane that this process holds, most of them waiting for their project's turn: more than one project may have
   * queued (`APISERVER_LIMITS.waitingPerProject` of a few apiservers), so that whoever else is on the lane is seen at once.
   */
  laneInFlight: 4_096,
  /** Reports being handled at a time: they end what was begun and wait for nobody. */
  reportsInFlight: 256,
  /** A command that a placement has taken and not acknowledged goes to another one after this. */
  ackWaitMs: 6_000,
  /** How often what waits for its turn says that it is not forgotten: well within that time. */
  extendEveryMs: 2_000,
  /** A group is looked at again after so long, until nothing more will come of it: whoever died, somebody goes on with it. */
  groupRoundMs: 2_000,
  /** A create that finds no living node is given back for this long at a time, until its own deadline. */
  noNodeRetryMs: 250,
  /** A create that finds no room is given back for this long at a time, until every node has been heard since it was asked for. */
  noRoomRetryMs: 100,
  /** What a beat may take on its way: one that is younger by less than this may tell of the time before. */
  beatTransitMs: 50,
  /** After so long every living node has been heard once: a beat's interval, and half of one more. */
  firstHearingMs: 1_500,
  /** A few beats: clocks that disagree must not hold an answer up for longer. */
  noRoomRetries: 30,
  /** After a failed append or forward the message is given back. */
  retryMs: 250,
  /** How often the queue of a lost Edge is looked at, and how many of its messages at a time. */
  lostQueueMs: 2_000,
  lostQueueBatch: 64,
  ...QUOTA_HOLDER_LIMITS,
  /** Tries to send one message whose outcome is unknown, with the same id each time, before its cause is given back instead. */
  sendAttempts: 3,
  sendRetryMs: 200,
} as const;
