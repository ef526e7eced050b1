/** What a client is told of a life-cycle command. */
import { z } from 'zod';
import { DurationMs, TimestampMs } from '../units.ts';

/** `idleDeadlineAt` is a floor: activity after it was granted moves the end further. */
export const GrantedLives = z.object({
  version: z.number().int().nonnegative(),
  totalDeadlineAt: TimestampMs,
  runningMs: DurationMs.nullable(),
  runningDeadlineAt: TimestampMs.nullable(),
  idleMs: DurationMs.nullable(),
  idleDeadlineAt: TimestampMs.nullable(),
  idlePauseMs: DurationMs.nullable().default(null),
  idlePauseDeadlineAt: TimestampMs.nullable().default(null),
});
export type GrantedLives = z.infer<typeof GrantedLives>;

/** A life-cycle command's answer. `pending`: stored for the Edge, which has not decided yet; the command will not be lost. */
export const Decision = z.object({
  decision: z.enum(['accepted', 'ignored', 'pending']),
  reason: z.string().optional(),
  version: z.number().int().optional(),
  /** The lives that hold after the decision, where it was about lives: what was granted, in absolute time. */
  lives: GrantedLives.optional(),
});
export type Decision = z.infer<typeof Decision>;
