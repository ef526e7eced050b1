/** What samples of several kinds have in common. */
import { wireError } from '../errors.ts';
import type { RecordKind } from '../records.ts';

export const at = 1_700_000_000_000;
export const later = at + 60_000;
export const digest = `sha256:${'0'.repeat(64)}`;
export const requestId = `rq-3-${'ab'.repeat(16)}`;
export const sandboxId = `sb-3-${'0123456789'.repeat(2)}-edge-1`;
export const execId = `ex-${'12'.repeat(12)}`;
export const error = wireError('START_FAILED', 'no /bin/sh in the image; choose another', { details: { step: 'exec' }, traceId: 't-1' });
export const capacity = { sandboxes: 100, memoryMiB: 65_536, cpuMillis: 64_000, pids: 100_000, diskMiB: 65_536, descriptors: 4_000 };

type Message = { readonly type: string; readonly [field: string]: unknown };
export const byType = (...messages: readonly Message[]) => Object.fromEntries(messages.map((message) => [message.type, message]));
export const events = (kind: RecordKind, ...messages: readonly Message[]) =>
  Object.fromEntries(messages.map((message) => [`${kind}.${message.type}`, message]));
