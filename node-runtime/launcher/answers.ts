/** What the launcher is told of a sandbox, and what it says. */
export type LaunchSpec = {
  readonly id: string;
  readonly hostname: string;
  /** Its range of host ids: 100000 + slot × 65536 onwards. No two sandboxes of a node share one. */
  readonly slot: number;
  /** Digests, lowest first; each must be mounted. */
  readonly layers: readonly string[];
  /** Directories on one file system; made when missing, parents one level up too. */
  readonly upper: string;
  readonly work: string;
  /** Where Aether keeps output and exit records; given to the sandbox's root. */
  readonly execDir: string;
  /** Aether's socket, at most 107 bytes. */
  readonly socket: string;
  /**
   * With a disk limit: the image file of the sandbox's own file system, in the same directory as `upper`, and the empty one that it
   * is copied from. `upper` and `work` lie in it then.
   */
  readonly disk?: string | undefined;
  readonly diskTemplate?: string | undefined;
  readonly memoryMiB: number;
  /** 0 when absent. */
  readonly swapMiB?: number | undefined;
  readonly cpuMillis: number;
  /** 1 to 10,000; 100 when absent. */
  readonly cpuWeight?: number | undefined;
  readonly pids: number;
  /** The sandbox ends itself after this, launcher and Edge or not; 0: never. */
  readonly lifeSeconds: number;
};

/** What a sandbox left when nobody wrote it down; used only when the launcher has no record of the sandbox. */
export type DestroySpec = { readonly id: string; readonly upper?: string; readonly work?: string; readonly disk?: string; readonly socket?: string };
export type Launched = {
  readonly pid: number /** Clock ticks since boot, as in /proc/<pid>/stat: pid and start name a process for ever. */;
  readonly startTime: number;
};
/** `pid` 0: nothing runs, but something of it is left to destroy. */
export type Present = { readonly id: string; readonly pid: number };
export type SandboxStats = { readonly memoryBytes: number; readonly cpuUsec: number; readonly pids: number; readonly oomKills: number };
/** What a payload used before and after; what of it lies in swap now, what compressed copies of that take, what of files was dropped. */
export type Reclaimed = {
  readonly beforeBytes: number;
  readonly afterBytes: number;
  readonly swappedBytes: number;
  readonly costBytes: number;
  readonly droppedBytes: number;
};
export type LauncherInfo = { readonly pid: number; readonly cgroup: 'v2' | 'v1' | 'mixed'; readonly erofs: 'file' | 'loop'; readonly version: string };
