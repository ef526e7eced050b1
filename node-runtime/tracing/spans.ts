/**
 * Spans of the platform's own work, below the one that its caller names. Costs one comparison while tracing is off; what a client sent is
 * passed on all the same, so that commits name the client's trace.
 */
import { type Attributes, context, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { DsecError } from '#bus/errors.ts';
import { formatTraceparent, parseTraceparent } from '#bus/trace-context.ts';

const tracer = trace.getTracer('dsec');
let isOn = false;

/** Called once by whoever registers where spans go. */
export const turnSpansOn = (): void => {
  isOn = true;
};

export type SpanOptions = {
  /** `traceparent` of the cause; without one a trace begins. */
  readonly parent?: string | undefined;
  readonly attributes?: Attributes;
  readonly kind?: SpanKind;
};

/** Runs `work` in a span; it is given the `traceparent` that names the span, for whatever it sends on. */
export const traced = <T>(name: string, { parent, attributes, kind }: SpanOptions, work: (traceparent: string | undefined) => Promise<T>): Promise<T> => {
  if (!isOn) return work(parent);
  const cause = parseTraceparent(parent);
  const from = cause
    ? trace.setSpanContext(context.active(), { traceId: cause.traceId, spanId: cause.spanId, traceFlags: cause.flags & TraceFlags.SAMPLED, isRemote: true })
    : trace.deleteSpan(context.active());
  return within(tracer.startSpan(name, { kind: kind ?? SpanKind.INTERNAL, ...(attributes ? { attributes } : {}) }, from), (span) => work(traceparentOf(span)));
};

/** A part of the work that a span covers already; without one around it, no span. */
export const tracedPart = <T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> => {
  if (!isOn || !trace.getActiveSpan()) return work();
  return within(tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }), work);
};

const within = async <T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> => {
  try {
    return await context.with(trace.setSpan(context.active(), span), () => work(span));
  } catch (thrown) {
    const code = thrown instanceof DsecError ? thrown.code : 'INTERNAL';
    span.setAttribute('dsec.code', code);
    span.setStatus({ code: SpanStatusCode.ERROR, message: thrown instanceof Error ? thrown.message : String(thrown) });
    throw thrown;
  } finally {
    span.end();
  }
};

const traceparentOf = (span: Span): string => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return formatTraceparent({ traceId, spanId, flags: traceFlags });
};
