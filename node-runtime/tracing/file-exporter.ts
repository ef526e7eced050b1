/** Spans as JSON lines in a file: for one machine and for tests. Several processes may write to one file: each line is one write. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { hrTimeToMicroseconds } from './time.ts';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';

/** What a line holds. Times in microseconds since 1970. */
export type SpanLine = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly service: string;
  readonly startUs: number;
  readonly durationUs: number;
  readonly error: string | null;
  readonly attributes: Readonly<Record<string, unknown>>;
};

export class FileSpanExporter implements SpanExporter {
  readonly #fd: number;
  #isOpen = true;

  /** Appends; throws where the file cannot be made. */
  constructor(path: string) {
    this.#fd = openSync(path, 'a', 0o600);
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    try {
      for (const span of this.#isOpen ? spans : []) writeSync(this.#fd, `${JSON.stringify(lineOf(span))}\n`);
      done({ code: 0 });
    } catch (thrown) {
      done({ code: 1, error: thrown as Error });
    }
  }

  async shutdown(): Promise<void> {
    if (this.#isOpen) closeSync(this.#fd);
    this.#isOpen = false;
  }

  async forceFlush(): Promise<void> {}
}

const lineOf = (span: ReadableSpan): SpanLine => {
  const { traceId, spanId } = span.spanContext();
  return {
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? null,
    name: span.name,
    service: String(span.resource.attributes['service.name'] ?? ''),
    startUs: hrTimeToMicroseconds(span.startTime),
    durationUs: hrTimeToMicroseconds(span.duration),
    error: span.status.message ?? null,
    attributes: span.attributes,
  };
};
