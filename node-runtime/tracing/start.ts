/**
 * Decides where spans go: a collector by OTLP/HTTP, a file, or nowhere. Loads the tracing libraries only when they go somewhere.
 *
 * Registers one provider for the process, so that the SDK, which knows the interface alone, is traced in it too.
 */
import type { SpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Config } from '../config.ts';
import { TRACING_LIMITS } from './limits.ts';
import { turnSpansOn } from './spans.ts';

export type Tracing = { /** Sends what waits. */ close(): Promise<void> };

/** `service` names the process among others: `dsec-apiserver`. */
export const startTracing = async ({ endpoint, file }: Config['traces'], service: string): Promise<Tracing> => {
  if (endpoint === undefined && file === undefined) return { close: async () => {} };
  const { context, trace } = await import('@opentelemetry/api');
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
  const { resourceFromAttributes } = await import('@opentelemetry/resources');
  const { BasicTracerProvider } = await import('@opentelemetry/sdk-trace-base');
  const spanProcessors = [...(endpoint === undefined ? [] : [await toCollector(endpoint)]), ...(file === undefined ? [] : [await toFile(file)])];
  const provider = new BasicTracerProvider({ resource: resourceFromAttributes({ 'service.name': service, 'process.pid': process.pid }), spanProcessors });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  turnSpansOn();
  return { close: () => provider.shutdown() };
};

const toCollector = async (endpoint: string): Promise<SpanProcessor> => {
  const { BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  return new BatchSpanProcessor(new OTLPTraceExporter({ url, timeoutMillis: TRACING_LIMITS.exportMs }), BATCH);
};

const toFile = async (file: string): Promise<SpanProcessor> => {
  const { BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const { FileSpanExporter } = await import('./file-exporter.ts');
  return new BatchSpanProcessor(new FileSpanExporter(file), BATCH);
};

const BATCH = {
  maxQueueSize: TRACING_LIMITS.queuedSpans,
  maxExportBatchSize: TRACING_LIMITS.spansPerBatch,
  scheduledDelayMillis: TRACING_LIMITS.batchMs,
  exportTimeoutMillis: TRACING_LIMITS.exportMs,
};
