export const CLUSTER_LIMITS = {
  /** Servers of the bus: the least that survives the loss of one. */
  busServers: 3,
  /** Instances of each cluster role: the least that survives the loss of one. */
  roleInstances: 2,
  /** Edges on one machine: addresses .1 to .100 of the cluster's network. */
  edgesMax: 100,
  /** A namespace's holder has entered it by then. */
  namespaceMs: 5_000,
  /** Three servers elect their leaders, and every stream its own. */
  formingMs: 60_000,
  formingPollMs: 250,
  formingRequestMs: 1_000,
  /** A server that was told to go lame is back by then: it takes 30 s at most to hand its clients over. */
  rollingMs: 60_000,
} as const;
