export const DOCTOR_LIMITS = {
  /** A child or a call that takes longer counts as not working. */
  probeTimeoutMs: 10_000,
  /** Entering a guest that never comes back must not hold up the doctor. */
  guestTimeoutMs: 2_000,
  /** Sandboxes, their sockets and logs take about five descriptors each. */
  comfortableDescriptors: 65_536,
  comfortablePids: 131_072,
  comfortableInotifyInstances: 512,
  /** A Debian base, a workspace and some uppers. */
  comfortableDiskBytes: 20 * 1024 ** 3,
  minimumDiskBytes: 2 * 1024 ** 3,
} as const;
