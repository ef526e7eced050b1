/**
 * W3C trace context as it travels: `traceparent` in the header of a request, in command envelopes and in commits. What it names is
 * for people who look for the cause of something; no decision reads it.
 */

export const TRACEPARENT_HEADER = 'traceparent';

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const NOTHING = /^0+$/;

export type TraceContext = { readonly traceId: string; readonly spanId: string; readonly flags: number };

/** Undefined for what is none, or of a version that is not known: then there is no trace, and nothing is refused. */
export const parseTraceparent = (traceparent: string | undefined): TraceContext | undefined => {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (!traceId || !spanId || !flags || NOTHING.test(traceId) || NOTHING.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
};

export const formatTraceparent = ({ traceId, spanId, flags }: TraceContext): string => `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;

/** For log lines: undefined where there is no trace. */
export const traceIdOf = (traceparent: string | undefined): string | undefined =>
  traceparent === undefined ? undefined : parseTraceparent(traceparent)?.traceId;
