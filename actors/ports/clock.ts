/** Time as a port. Decisions never see it: shells read it and put the number into commands. */
import type { TimestampMs } from '#bus/units.ts';

export interface Clock {
  /** Wall clock, UTC. */
  now(): TimestampMs;
  /** Never goes backwards; origin unknown. For leases and time-outs. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  now: () => Date.now() as TimestampMs,
  monotonicMs: () => performance.now(),
};

/** The system's clock, moved: what a host shows whose time is not synchronised. */
export const clockWithOffset = (offsetMs: number): Clock =>
  offsetMs === 0 ? systemClock : { ...systemClock, now: () => (Date.now() + offsetMs) as TimestampMs };
