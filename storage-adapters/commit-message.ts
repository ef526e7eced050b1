/**
 * A commit as a message of an events stream: headers on the way in, meaning on the way out. Every adapter of the event
 * log uses this, so that the same commit has the same size and the same identity everywhere.
 *
 * A message without a body is a tombstone. A message that cannot be read is data, not an exception: whether it stops the
 * reader is the reader's decision.
 */
import { decodeCommit } from '#bus/envelope.ts';
import { toWireError, type WireError, wireError } from '#bus/errors.ts';
import { type ActorAddress, parseCommitSubject } from '#bus/subjects.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';

export const HEADER = {
  messageId: 'Nats-Msg-Id',
  expectedSequence: 'Nats-Expected-Last-Subject-Sequence',
  rollup: 'Nats-Rollup',
  ttl: 'Nats-TTL',
} as const;

/** Names and values; values hold no line break. */
export type Headers = Readonly<Record<string, string>>;

export const commitHeaders = (messageId: string, expectedSequence: number): Headers => ({
  [HEADER.messageId]: messageId,
  [HEADER.expectedSequence]: String(expectedSequence),
});

/** Replaces all that lies on the subject and goes away by itself. The server counts in seconds and takes no less than one. */
export const tombstoneHeaders = (messageId: string, expectedSequence: number, ttlMs: number): Headers => ({
  ...commitHeaders(messageId, expectedSequence),
  [HEADER.rollup]: 'sub',
  [HEADER.ttl]: `${Math.max(1, Math.ceil(ttlMs / 1_000))}s`,
});
export const tombstoneId = (address: ActorAddress, expectedSequence: number): string => `${address.project}:${address.id}:${expectedSequence}:forget`;

const FRAME = 'NATS/1.0\r\n\r\n'.length;
const LINE_OVERHEAD = ': \r\n'.length;
/** Length of the header block on the wire; the payload limit counts it. */
export const headerBytes = (headers: Headers): number => {
  let bytes = 0;
  for (const name in headers) bytes += Buffer.byteLength(name) + Buffer.byteLength(headers[name] ?? '') + LINE_OVERHEAD;
  return bytes === 0 ? 0 : bytes + FRAME;
};

/** A message as it lies in the stream. `messageId` is empty when it was published without one. */
export type StoredMessage = { readonly subject: string; readonly sequence: number; readonly data: Uint8Array; readonly messageId: string };

export type Unreadable = { readonly subject: string; readonly sequence: number; readonly error: WireError };
export type Entry =
  | { readonly kind: 'commit'; readonly stored: StoredCommit }
  | { readonly kind: 'forgotten'; readonly address: ActorAddress; readonly sequence: number }
  | { readonly kind: 'unreadable'; readonly unreadable: Unreadable };

export const readEntry = ({ subject, sequence, data }: Omit<StoredMessage, 'messageId'>): Entry => {
  const unreadable = (error: WireError): Entry => {
    const message = `${subject} at sequence ${sequence}: ${error.message}`;
    return { kind: 'unreadable', unreadable: { subject, sequence, error: { ...error, message, details: { ...error.details, subject, sequence } } } };
  };
  const address = parseCommitSubject(subject);
  if (!address) return unreadable(wireError('MALFORMED_MESSAGE', 'no actor can have this subject'));
  if (data.byteLength === 0) return { kind: 'forgotten', address, sequence };
  try {
    const commit = decodeCommit(data);
    if (commit.kind !== address.kind || commit.actorId !== address.id)
      return unreadable(wireError('MALFORMED_MESSAGE', `holds a commit of ${commit.kind} ${commit.actorId}`));
    return { kind: 'commit', stored: { address, sequence, commit } };
  } catch (thrown) {
    return unreadable(toWireError(thrown));
  }
};

export const conflictError = (subject: string, expectedSequence: number): WireError =>
  wireError('SUPERSEDED', `${subject}: another writer's commit follows sequence ${expectedSequence}; reload and decide again`, {
    retry: 'later',
    fault: 'infra',
    details: { expectedSequence },
  });

export const tooLargeError = (subject: string, bytes: number, limitBytes: number): WireError =>
  wireError('PAYLOAD_TOO_LARGE', `${subject}: message has ${bytes} bytes with its headers; the bus takes ${limitBytes}. Send less in one message`, {
    details: { bytes, limitBytes },
  });
