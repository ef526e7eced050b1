/** Bounds of the placement policy and of the fleet view it looks at. */
export const PLACEMENT_POLICY = {
  /** Candidates looked at for each node wanted: a few are enough to avoid the full ones and too few to make a herd (@paper §7). */
  samplesPerNode: 3,
  /** Nodes that share one chunk of a group: a message per node is what a packed create costs. */
  nodesPerChunkMax: 16,
  /** A group is spread over more nodes only while each gets at least this many. */
  itemsPerNodeMin: 4,
} as const;

export const FLEET_LIMITS = {
  /** Beats come each second; after four missed ones nothing new is sent to a node. */
  freshMs: 4_500,
  /** A decision is taken to be in the beats received this long after it: the way to the Edge, its admission and one beat. */
  settleMs: 1_500,
  /** Decisions of one node not yet seen in its beats; the oldest are merged beyond it. */
  decisionsPerNode: 256,
  /** Ten of the paper's units (@paper §2.4). */
  nodes: 1_600,
} as const;
