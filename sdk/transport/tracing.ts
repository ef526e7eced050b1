/**
 * A span for each call, where the program that uses the SDK has set up OpenTelemetry; else none, and nothing is sent. The platform goes on
 * from the `traceparent` that the request carries.
 */
import { type Attributes, type Span, SpanKind, SpanStatusCode, isSpanContextValid, trace } from '@opentelemetry/api';
import { DsecError } from '#bus/errors.ts';
import { formatTraceparent, TRACEPARENT_HEADER } from '#bus/trace-context.ts';

const tracer = trace.getTracer('@dsec/sdk');

export type Headers = Readonly<Record<string, string>>;

/** Runs `call` in a span; it is given the headers to send, none where nothing is traced. */
export const traced = async <T>(name: string, attributes: Attributes, call: (headers: Headers | undefined) => Promise<T>): Promise<T> => {
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
  try {
    return await call(headersOf(span));
  } catch (thrown) {
    span.setAttribute('dsec.code', thrown instanceof DsecError ? thrown.code : 'INTERNAL');
    span.setStatus({ code: SpanStatusCode.ERROR, message: thrown instanceof Error ? thrown.message : String(thrown) });
    throw thrown;
  } finally {
    span.end();
  }
};

const headersOf = (span: Span): Headers | undefined => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (!isSpanContextValid(span.spanContext())) return undefined;
  return { [TRACEPARENT_HEADER]: formatTraceparent({ traceId, spanId, flags: traceFlags }) };
};
