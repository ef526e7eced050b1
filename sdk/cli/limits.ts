/** Bounds of the client commands. */
export const CLI_LIMITS = {
  /** Sandboxes that `stop --all` and the like work on at one time. */
  sandboxesAtOnce: 16,
  /** Nodes say each second how they are. */
  topRefreshMs: 1_000,
  /** How often a long command to many says how far it is. */
  progressMs: 2_000,
  /** Commands of `run --count` under way at one time. */
  commandsAtOnce: 32,
  /** Rows whose columns are aligned with each other. */
  rowsPerTable: 1_000,
  /** A terminal whose size nobody knows. */
  terminalRows: 24,
  terminalColumns: 80,
  /** Of an attached terminal's past, about a screen is shown. */
  attachTailBytes: 4_096,
  /** Longest value shown in one cell of a table; `--json` shows all of it. */
  cellLength: 60,
} as const;
