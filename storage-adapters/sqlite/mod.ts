/**
 * Read models in SQLite. Nothing here is truth: every file may be deleted and is built again from the streams.
 *
 * ```ts
 * const projection = SandboxProjection.open(path);
 * const runner = await runProjection({ projection, eventLog, shards, onError });
 * await projection.waitFor(runner.startedAt, timeoutMs);
 * projection.list({ project, labels: { suite: 'nightly' }, statuses: [], after: undefined, limit: 100 });
 * ```
 */
export { PROJECTION_LIMITS } from './limits.ts';
export { type ProjectionRunner, type ProjectionRunnerOptions, runProjection } from './projection-runner.ts';
export { type ListQuery, type ProjectionEntry, SandboxProjection, type SandboxPage, type Sequences, type StreamBounds } from './sandbox.projection.ts';
