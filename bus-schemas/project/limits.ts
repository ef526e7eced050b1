export const PROJECT_LIMITS = {
  /** Levels below a root. Each level is one more commit per quota lease. */
  depth: 16,
  /** All of a project's records travel in each of its commits: together they stay well below one message. */
  principals: 200,
  credentialsPerPrincipal: 16,
  grants: 400,
  children: 1_000,
  /** Open at a time: placements × shapes of need, times two while the old one is being settled. */
  leases: 512,
} as const;
