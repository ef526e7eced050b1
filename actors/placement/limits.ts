/** Bounds of the placement policy and of the fleet view it looks at. */
export const PLACEMENT_POLICY = {
  /**
   * Candidates looked at for each node wanted: enough to avoid the full ones (@paper §7). It is the overlay, not a small sample, that
   * keeps a herd from forming: what is measured of both stands in `simulations/REPORT.md`.
   */
  samplesPerNode: 8,
  /**
   * Nodes that share one chunk of a group: a message per node is what a packed create costs. Placements do not see each other's
   * choices, so the fullest node may get a block too many from each of them (they count each other since, which levels the rest): 32,000 on 160 nodes by four placements end at up to
   * 1.20 times the mean with 16 nodes, 1.15 with 20, 1.11 with 24, 1.08 with 32 (`simulations/REPORT.md`).
   */
  nodesPerChunkMax: 24,
  /** … and no more than one in so many of the nodes there are: on a small fleet few and large messages level it as well. */
  fleetPerChunkNode: 2,
  nodesPerChunkMin: 4,
  /** A group is spread over more nodes only while each gets at least this many. */
  itemsPerNodeMin: 4,
  /** A node that has every layer ready counts as this much less loaded (of 1): worth a fetch, not worth an overloaded node. */
  localityBonus: 0.1,
  /** What each failure of late adds to a node's load (of 1); at `avoidAbove` of them it is chosen only when no other node has room. */
  failurePenalty: 0.25,
  avoidAbove: 2,
} as const;

export const FLEET_LIMITS = {
  /** Beats come each second; after four missed ones nothing new is sent to a node. */
  freshMs: 4_500,
  /**
   * A decision whose place in the queue is not known is taken to be in the beats received this long after it: the way to the Edge,
   * its admission and one beat.
   */
  settleMs: 1_500,
  /** One whose place is known stays until a beat reflects it, but not for ever: the queue may have been made anew. */
  settleAtMostMs: 30_000,
  /** Decisions of one node not yet seen in its beats; the oldest are merged beyond it. */
  decisionsPerNode: 256,
  /** Ten of the paper's units (@paper §2.4). */
  nodes: 1_600,
  /** A failure counts half after this long: what made a node fail is often over in seconds, and it must not be shunned for ever. */
  failureHalfLifeMs: 15_000,
  /** What one refusal for lack of room counts as: the view was old, the node is not at fault. */
  fullWeight: 0.5,
  /** More failures than this are not told apart. */
  failuresMax: 8,
} as const;

export const RECENT_LIMITS = {
  /** Request actors that one placement keeps; the oldest idle ones are dropped and loaded again when needed. */
  requests: 4_096,
  /** … and the sandboxes that they tell of, some 200 bytes each: two of the largest groups (@paper §1). */
  items: 65_536,
} as const;

export const FAIR_LIMITS = {
  /** Requests of one lane being placed at a time by one process. */
  inFlight: 64,
  /** … of which one project may have so many while others wait. */
  inFlightPerProject: 16,
} as const;
