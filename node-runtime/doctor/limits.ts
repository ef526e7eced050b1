export const DOCTOR_LIMITS = {
  /** A child or a call that takes longer counts as not working. */
  probeTimeoutMs: 10_000,
  /** Entering a guest that never comes back must not hold up the doctor. */
  guestTimeoutMs: 2_000,
  /** Sandboxes, their sockets and logs take about five descriptors each. */
  comfortableDescriptors: 65_536,
  comfortablePids: 131_072,
  comfortableInotifyInstances: 512,
  /** A front-end project with its dependencies has some 50,000 directories. */
  comfortableInotifyWatches: 65_536,
  /** 256 for each of 3,200 sandboxes. */
  comfortableOpenFiles: 3_200 * 256,
  /** One for each of 3,200 sandboxes, beside the host's 1,024. */
  comfortableTerminals: 3_200 + 1_024,
  /** What kernels gave by default before it became a quarter of the area for modules. */
  comfortableJitBytes: 40_000 * 4_096,
  comfortableNamespaces: 3_200,
  comfortableMounts: 65_536,
  /** A Debian base, a workspace and some uppers. */
  comfortableDiskBytes: 20 * 1024 ** 3,
  minimumDiskBytes: 2 * 1024 ** 3,
} as const;
