/**
 * The two envelopes that carry everything durable: a command on COMMANDS, a commit on EVENTS.
 * Both hold an integer version; older versions are lifted by pure upcasters before the schema is applied.
 */
import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { DsecError } from './errors.ts';
import { WIRE_LIMITS } from './limits.ts';
import { ProjectName } from './ids.ts';
import { proofOf } from './proof.ts';
import { ACTOR_KINDS } from './subjects.ts';
import { TimestampMs } from './units.ts';
import { type Versioned, upcast } from './upcasters.ts';

export const COMMAND_VERSION = 1;
export const COMMIT_VERSION = 1;

const id = z.string().min(1).max(200);

/** A request that may be refused. `id` stays the same over every repetition of the same command. */
export const CommandEnvelope = z.object({
  v: z.literal(COMMAND_VERSION),
  id,
  at: TimestampMs,
  project: ProjectName,
  /** Who asked, as IAM knows it. */
  principal: z.string().max(200).default('anonymous'),
  /** Where the decision is published, best effort; the truth is the commit. */
  replyTo: z.string().max(200).optional(),
  /** After this the command is answered DEADLINE_EXCEEDED instead of being decided. */
  deadlineAt: TimestampMs.optional(),
  correlationId: id,
  causationId: id.optional(),
  traceparent: z.string().max(100).optional(),
  data: z.looseObject({ type: z.string().min(1).max(64) }),
});
export type CommandEnvelope = z.infer<typeof CommandEnvelope>;

/** The events of one decision and the state they lead to: ONE message on the actor's subject. */
export const Commit = z.object({
  v: z.literal(COMMIT_VERSION),
  kind: z.enum(ACTOR_KINDS),
  actorId: z.string(),
  /** Number of this commit in the actor's life: 1, 2, 3, … (INV-SEQ). */
  version: z.number().int().positive(),
  at: TimestampMs,
  commandId: id,
  correlationId: id,
  causationId: id.optional(),
  principal: z.string().default('anonymous'),
  traceparent: z.string().optional(),
  /** Stream sequence of the newest command taken from COMMANDS; lower ones are answered as superseded. */
  lastCommandSequence: z.number().int().nonnegative(),
  /** Version of the event and state schemas of this kind. */
  schema: z.number().int().positive(),
  events: z.array(z.looseObject({ type: z.string() })).min(1),
  state: z.looseObject({}),
});
export type Commit = z.infer<typeof Commit>;

const parseWith = <T>(what: string, kind: string, schema: z.ZodType<T>, bytes: Uint8Array | string): T => {
  let raw: unknown;
  try {
    raw = JSON.parse(typeof bytes === 'string' ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch (cause) {
    throw DsecError.of('MALFORMED_MESSAGE', `${what} is not JSON; send one UTF-8 JSON object`, { cause });
  }
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) throw DsecError.of('MALFORMED_MESSAGE', `${what} is not a JSON object`);
  if (proofOf(schema)(raw)) return raw as T;
  const parsed = schema.safeParse(upcast(kind, raw as Versioned, what));
  if (!parsed.success) throw invalid('MALFORMED_MESSAGE', what, parsed.error);
  return parsed.data;
};

/** Names the fields that are wrong, at most five of them, in the caller's own terms. */
export const invalid = (code: ErrorCode, what: string, error: z.ZodError): DsecError => {
  const issues = error.issues.slice(0, 5).map((i) => `${i.path.length > 0 ? `${i.path.map(fieldName).join('.')}: ` : ''}${reasonOf(i)}`);
  return DsecError.of(code, `${what}: ${issues.join('; ')}`.slice(0, 1_000), {
    details: { fields: error.issues.slice(0, 20).map((i) => i.path.map(String).join('.').slice(0, 200)) },
  });
};

/** Of a record's own key, which may be anything. */
const fieldName = (part: PropertyKey): string => (/^[\x21-\x7e]+$/.test(String(part)) ? String(part) : JSON.stringify(String(part)));
const reasonOf = (issue: z.core.$ZodIssue): string => (issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message);

/** Reads a command; throws MALFORMED_MESSAGE or UNSUPPORTED_VERSION. */
export const decodeCommand = (bytes: Uint8Array | string): CommandEnvelope => parseWith('command', 'command', CommandEnvelope, bytes);
/** Reads a commit; throws MALFORMED_MESSAGE or UNSUPPORTED_VERSION. */
export const decodeCommit = (bytes: Uint8Array | string): Commit => parseWith('commit', 'commit', Commit, bytes);

/** Serialises, and refuses locally what the server would answer by closing the shared connection. */
export const encode = (what: string, value: unknown): Uint8Array => {
  const bytes = Buffer.from(JSON.stringify(value), 'utf8');
  assertFits(what, bytes.byteLength);
  return bytes;
};
export const assertFits = (what: string, byteLength: number): void => {
  if (byteLength > WIRE_LIMITS.maxMessageBytes)
    throw DsecError.of(
      'PAYLOAD_TOO_LARGE',
      `${what} has ${byteLength} bytes; the limit is ${WIRE_LIMITS.maxMessageBytes}. Send large data through files or stdin`,
      {
        details: { bytes: byteLength, limitBytes: WIRE_LIMITS.maxMessageBytes },
      },
    );
};
