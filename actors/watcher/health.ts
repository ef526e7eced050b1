/**
 * Judges one node by its beats: healthy or suspect, with hysteresis. A pure fold; `atMs` is the judge's own monotonic time.
 *
 * Silence makes a node suspect at once; what a node says of itself must look bad for several beats, and good for several more.
 * Suspect nodes get new work only when no healthy one can take it. Does not decide about loss: that is the lease (`leases.ts`).
 * @paper §3.2
 */
import type { Beat } from '#bus/edge/schema.ts';
import { HEALTH_POLICY } from './limits.ts';

export const CONDITIONS = ['silent', 'disk', 'memory', 'kernel', 'clock'] as const;
export type Condition = (typeof CONDITIONS)[number];

export type NodeHealth = {
  readonly health: 'healthy' | 'suspect';
  /** What looked bad in the newest beat, or `silent`. */
  readonly conditions: readonly Condition[];
  /** Beats in a row that spoke against the present judgement. */
  readonly against: number;
  readonly heardAtMs: number;
  readonly generation: number;
  readonly kernelErrors: number | null;
};

/** `wallAt`: the judge's wall clock at the moment of reception; what a beat took on its way is far below the limit. */
export const judgeBeat = (before: NodeHealth | undefined, beat: Beat, atMs: number, wallAt: number): NodeHealth => {
  const conditions = conditionsOf(before, beat, wallAt);
  const isBad = conditions.length > 0;
  const health = before?.health ?? 'healthy';
  const against = isBad === (health === 'healthy') ? (before?.against ?? 0) + 1 : 0;
  const needed = health === 'healthy' ? HEALTH_POLICY.badBeats : HEALTH_POLICY.goodBeats;
  const turns = against >= needed;
  return {
    health: turns ? (health === 'healthy' ? 'suspect' : 'healthy') : health,
    conditions,
    against: turns ? 0 : against,
    heardAtMs: atMs,
    generation: beat.generation,
    kernelErrors: beat.probes?.kernelErrors ?? null,
  };
};

/** What time alone does: a node that is not heard is suspect, and begins its good beats anew when it is. */
export const judgeSilence = (node: NodeHealth, atMs: number): NodeHealth => {
  if (atMs - node.heardAtMs <= HEALTH_POLICY.silentAfterMs || node.conditions.includes('silent')) return node;
  return { ...node, health: 'suspect', conditions: ['silent'], against: 0 };
};

const conditionsOf = (before: NodeHealth | undefined, { at, generation, probes }: Beat, wallAt: number): Condition[] => {
  const found: Condition[] = [];
  if (Math.abs(at - wallAt) > HEALTH_POLICY.clockSkewMs) found.push('clock');
  if (!probes) return found;
  if (probes.diskFreeMiB < HEALTH_POLICY.diskFloorMiB) found.push('disk');
  const isPressed = (probes.memoryPressurePercent ?? 0) > HEALTH_POLICY.memoryPressurePercent;
  if (isPressed || probes.memoryAvailableMiB < HEALTH_POLICY.memoryFloorMiB) found.push('memory');
  if (before && kernelErrorsSince(before, generation, probes.kernelErrors ?? 0) >= HEALTH_POLICY.kernelErrorsPerBeat) found.push('kernel');
  return found;
};

/** An Edge that was started again counts from nothing. What was logged before the first beat that we hear is old. */
const kernelErrorsSince = (before: NodeHealth, generation: number, errors: number): number =>
  errors - (before.generation === generation ? (before.kernelErrors ?? 0) : 0);
