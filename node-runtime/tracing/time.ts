/** OpenTelemetry's pairs of seconds and nanoseconds. */
export const hrTimeToMicroseconds = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000_000 + Math.round(nanos / 1_000);
