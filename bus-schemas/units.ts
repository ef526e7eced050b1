/** Units as types: a number whose unit matters never travels as a bare `number` between modules. */
import { z } from 'zod';

/** Milliseconds since the epoch, UTC. Integer. */
export const TimestampMs = z.number().int().nonnegative().brand<'TimestampMs'>();
export type TimestampMs = z.infer<typeof TimestampMs>;

/** A span of time in milliseconds. Integer, never negative. */
export const DurationMs = z.number().int().nonnegative().brand<'DurationMs'>();
export type DurationMs = z.infer<typeof DurationMs>;

/** Memory or disk in binary megabytes. Integer. */
export const MiB = z.number().int().nonnegative().brand<'MiB'>();
export type MiB = z.infer<typeof MiB>;

/** CPU in thousandths of a core. Integer. */
export const CpuMillis = z.number().int().nonnegative().brand<'CpuMillis'>();
export type CpuMillis = z.infer<typeof CpuMillis>;

export const addMs = (at: TimestampMs, span: DurationMs): TimestampMs => (at + span) as TimestampMs;
