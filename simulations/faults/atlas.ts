/**
 * What the design promises to survive, and no more: the bounds within which a seed draws its faults. A fault beyond this atlas
 * proves nothing when it breaks something; one within it that breaks something is a bug.
 *
 * | family | what happens | why it is promised |
 * |---|---|---|
 * | network | delay, loss, copies, overtaking; a process cut off for longer than its lease | commits carry expected sequences, commands are repeated with the same id, leases fence |
 * | log | answers lost after the write, requests lost, a stream without a leader | an unknown outcome is repeated, never decided anew |
 * | bus | the server is away, and back with what it had stored | every process waits; consumers are made anew in order |
 * | process | any process is killed at any moment and started again | nothing but the log holds truth |
 * | power | a node is gone with all that ran on it, and boots again or never does | loss is derived from one commit |
 * | time | clocks that are wrong and run at wrong speeds | deadlines are data, leases are counted on monotonic clocks |
 * | driver | slow boots, errors, sandboxes that die, processes that a kill does not end | effects are goals, and are repeated |
 * | storage | a node lacks a layer for a while; a fetch takes seconds and breaks off | another node is tried; a fetch is repeated |
 * | tenant | keys used twice with another body, stops before the start, stops by many | commands are decided in every state |
 *
 * Not in it: a disk that loses what it had stored, a clock that jumps within a process's life, two machines under one name, more
 * than half of the bus gone, an Edge that ignores its own lease.
 */
export const ATLAS = {
  delayMaxUs: 300_000,
  lossPerMilleMax: 20,
  doublePerMilleMax: 10,
  strayPerMilleMax: 50,
  partitionMsMax: 60_000,
  lostAnswerPerMilleMax: 30,
  lostRequestPerMilleMax: 30,
  /** A leader election after a kill takes 5–8 s. */
  leaderGapMsMin: 1_000,
  leaderGapMsMax: 10_000,
  outageMsMax: 10_000,
  skewMsMax: 2_000,
  /** Within a lease of 30 s a clock that is this wrong is off by 6 ms. */
  driftPpmMax: 200,
  bootMsMax: 60_000,
  fetchErrorPerMilleMax: 200,
} as const;
