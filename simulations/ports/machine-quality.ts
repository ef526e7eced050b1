/** How fast a node is and what goes wrong on it. Times from the measurements of one node; see FACTS in each line's comment. */

export type MachineQuality = {
  /** A launch: mounts, clone, pivot, exec of the agent. Measured 3–30 ms with 1,000 live beside it. */
  readonly bootMinUs: number;
  readonly bootMaxUs: number;
  readonly slowBootPerMille: number;
  readonly slowBootUs: number;
  /** An error that is tried again, and one that is not. */
  readonly launchErrorPerMille: number;
  readonly startFailedPerMille: number;
  readonly destroyMinUs: number;
  readonly destroyMaxUs: number;
  /** A process that SIGKILL does not end for a while: uninterruptible I/O. Longer than the state allows for stopping. */
  readonly zombiePerMille: number;
  readonly zombieUs: number;
  readonly pauseUs: number;
  readonly resumeUs: number;
  /** Longest; short ones take as long as a resume. */
  readonly snapshotUs: number;
  readonly changeErrorPerMille: number;
  /** One layer from the store, and how often that breaks off. */
  readonly fetchMinUs: number;
  readonly fetchMaxUs: number;
  readonly fetchErrorPerMille: number;
  readonly oomPerMille: number;
  readonly oomWithinUs: number;
  /** Whether agents end their sandboxes when the total life is over and nobody does; costs one pending task each. */
  readonly agentEndsLife: boolean;
};

export const GOOD_MACHINE: MachineQuality = {
  bootMinUs: 3_000,
  bootMaxUs: 30_000,
  slowBootPerMille: 0,
  slowBootUs: 20_000_000,
  launchErrorPerMille: 0,
  startFailedPerMille: 0,
  destroyMinUs: 500,
  destroyMaxUs: 8_000,
  zombiePerMille: 0,
  zombieUs: 45_000_000,
  pauseUs: 300_000,
  resumeUs: 150_000,
  snapshotUs: 5_000_000,
  changeErrorPerMille: 0,
  // some 40 to 300 MiB, at what the store of three servers was measured to give
  fetchMinUs: 1_000_000,
  fetchMaxUs: 8_000_000,
  fetchErrorPerMille: 0,
  oomPerMille: 0,
  oomWithinUs: 60_000_000,
  agentEndsLife: true,
};

export const MACHINE_LIMITS = {
  /** As the Edge's semaphore gives the launcher. */
  launchesInFlight: 32,
  /** Layers kept on a node, and named in a beat, as the Edge does. */
  layers: 4_096,
  beatLayers: 64,
  /** So long a launcher remembers what it destroyed. */
  tombKeepMs: 86_400_000,
  /** After the total life, before the agent ends its sandbox without being told. */
  agentGraceMs: 60_000,
} as const;
