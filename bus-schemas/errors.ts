/**
 * The error registry: every code that may cross a process border, with whose fault it is, whether to retry, and how it
 * looks over HTTP and as a program's exit code. One object; every map over codes is exhaustive by type.
 */
import { z } from 'zod';

/** Whose failure it is. A trainer masks `infra` and `preempted` instead of scoring them 0 (@paper §1). */
export const Fault = z.enum(['agent', 'environment', 'infra', 'policy', 'preempted']);
export type Fault = z.infer<typeof Fault>;

/** `never`: the same call fails again. `same`: repeat with the same key or id. `later`: the same call, after a pause. */
export const Retry = z.enum(['never', 'same', 'later']);
export type Retry = z.infer<typeof Retry>;

/** Whether the effect of the call happened. A time-out is `unknown`, never a failure. */
export const Outcome = z.enum(['applied', 'not_applied', 'unknown']);
export type Outcome = z.infer<typeof Outcome>;

type Row = { readonly fault: Fault; readonly retry: Retry; readonly outcome: Outcome; readonly http: number; readonly exit: number };
const row = (fault: Fault, retry: Retry, outcome: Outcome, http: number, exit: number): Row => ({ fault, retry, outcome, http, exit });

export const ERRORS = {
  // what the caller wrote
  INVALID_ARGUMENT: row('agent', 'never', 'not_applied', 400, 2),
  PAYLOAD_TOO_LARGE: row('agent', 'never', 'not_applied', 413, 2),
  MALFORMED_MESSAGE: row('agent', 'never', 'not_applied', 400, 2),
  UNSUPPORTED_VERSION: row('agent', 'never', 'not_applied', 400, 2),
  UNKNOWN_VERB: row('agent', 'never', 'not_applied', 404, 2),
  LIMIT_OUT_OF_RANGE: row('agent', 'never', 'not_applied', 400, 2),
  KEY_CONFLICT: row('agent', 'never', 'not_applied', 409, 3),
  KEY_EXPIRED: row('agent', 'never', 'not_applied', 410, 3),
  // what the caller may do
  UNAUTHENTICATED: row('policy', 'never', 'not_applied', 401, 4),
  FORBIDDEN: row('policy', 'never', 'not_applied', 403, 4),
  QUOTA_EXCEEDED: row('policy', 'later', 'not_applied', 429, 4),
  // what the caller named
  PROJECT_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  PRINCIPAL_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  CREDENTIAL_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  PROJECT_EXISTS: row('agent', 'never', 'not_applied', 409, 3),
  PRINCIPAL_EXISTS: row('agent', 'never', 'not_applied', 409, 3),
  SANDBOX_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  REQUEST_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  JOB_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  ROLLOUT_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  NODE_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  EXEC_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  IMAGE_NOT_FOUND: row('environment', 'never', 'not_applied', 404, 5),
  LAYER_NOT_FOUND: row('environment', 'later', 'not_applied', 404, 5),
  USER_NOT_FOUND: row('environment', 'never', 'not_applied', 404, 5),
  CWD_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  COMMAND_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 127),
  COMMAND_NOT_EXECUTABLE: row('agent', 'never', 'not_applied', 400, 126),
  SNAPSHOT_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  FILE_NOT_FOUND: row('agent', 'never', 'not_applied', 404, 5),
  OUTPUT_EXPIRED: row('policy', 'never', 'not_applied', 410, 5),
  // what a file is, or is not
  FILE_EXISTS: row('agent', 'never', 'not_applied', 409, 3),
  NOT_A_DIRECTORY: row('agent', 'never', 'not_applied', 409, 6),
  IS_A_DIRECTORY: row('agent', 'never', 'not_applied', 409, 6),
  DIRECTORY_NOT_EMPTY: row('agent', 'never', 'not_applied', 409, 6),
  NOT_REGULAR: row('agent', 'never', 'not_applied', 409, 6),
  TOO_MANY_LINKS: row('agent', 'never', 'not_applied', 409, 6),
  CROSSES_FILE_SYSTEMS: row('agent', 'never', 'not_applied', 409, 6),
  FILE_BUSY: row('agent', 'later', 'not_applied', 409, 6),
  FILE_TOO_LARGE: row('agent', 'never', 'not_applied', 413, 8),
  PERMISSION_DENIED: row('agent', 'never', 'not_applied', 403, 4),
  UNSAFE_ENTRY: row('agent', 'never', 'unknown', 400, 2),
  BAD_ARCHIVE: row('agent', 'never', 'unknown', 400, 2),
  CONNECTION_LOST: row('infra', 'later', 'unknown', 502, 10),
  CONNECTION_BROKEN: row('environment', 'later', 'unknown', 502, 9),
  FILE_SESSION_LOST: row('infra', 'later', 'unknown', 410, 10),
  FILE_FAILED: row('environment', 'never', 'unknown', 500, 9),
  UNPORTABLE_FILE: row('agent', 'never', 'not_applied', 409, 6),
  // what state it is in
  PORT_CLOSED: row('agent', 'later', 'not_applied', 502, 6),
  INVALID_STATE: row('agent', 'never', 'not_applied', 409, 6),
  SUPERSEDED: row('agent', 'never', 'not_applied', 409, 6),
  JOB_ENDED: row('agent', 'never', 'not_applied', 410, 6),
  JOB_OWNED: row('agent', 'later', 'not_applied', 409, 3),
  LEASE_LOST: row('preempted', 'never', 'not_applied', 409, 3),
  TURN_OUT_OF_ORDER: row('agent', 'never', 'not_applied', 409, 6),
  TURN_ANSWERED: row('agent', 'never', 'not_applied', 409, 3),
  ROLLOUT_ENDED: row('agent', 'never', 'not_applied', 410, 6),
  SANDBOX_ENDED: row('agent', 'never', 'not_applied', 410, 6),
  STDIN_CLOSED: row('agent', 'never', 'not_applied', 409, 6),
  NOT_SUPPORTED: row('infra', 'never', 'not_applied', 501, 7),
  // what ran out
  NO_CAPACITY: row('infra', 'later', 'not_applied', 503, 8),
  NODE_FULL: row('infra', 'later', 'not_applied', 503, 8),
  NO_SPACE: row('environment', 'later', 'not_applied', 507, 8),
  PIDS_LIMIT: row('agent', 'later', 'not_applied', 429, 8),
  OVERLOADED: row('infra', 'later', 'not_applied', 429, 8),
  // what ended it
  DEADLINE_EXCEEDED: row('infra', 'later', 'unknown', 504, 124),
  CANCELLED: row('agent', 'never', 'unknown', 499, 130),
  EXPIRED: row('policy', 'never', 'applied', 410, 9),
  SANDBOX_FAILED: row('environment', 'never', 'applied', 500, 9),
  SANDBOX_LOST: row('infra', 'later', 'unknown', 503, 9),
  LAUNCH_FAILED: row('infra', 'later', 'not_applied', 500, 9),
  START_FAILED: row('environment', 'never', 'not_applied', 500, 9),
  // what is down
  EDGE_UNAVAILABLE: row('infra', 'same', 'unknown', 503, 10),
  EDGE_FENCED: row('infra', 'later', 'not_applied', 503, 10),
  IAM_UNAVAILABLE: row('infra', 'same', 'unknown', 503, 10),
  API_UNAVAILABLE: row('infra', 'same', 'unknown', 503, 10),
  BUS_UNAVAILABLE: row('infra', 'same', 'unknown', 503, 10),
  LAYER_STORE_UNAVAILABLE: row('infra', 'later', 'not_applied', 503, 10),
  BUS_TOO_OLD: row('infra', 'never', 'not_applied', 500, 10),
  BUS_MISCONFIGURED: row('infra', 'never', 'not_applied', 500, 10),
  REPLAY_DIVERGED: row('infra', 'later', 'unknown', 500, 9),
  OUTCOME_UNKNOWN: row('infra', 'same', 'unknown', 504, 10),
  HOST_UNFIT: row('infra', 'never', 'not_applied', 500, 10),
  INTERNAL: row('infra', 'later', 'unknown', 500, 70),
} as const satisfies Record<string, Row>;

export type ErrorCode = keyof typeof ERRORS;
export const ErrorCode = z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]);

/** The one shape of an error on any wire. `message` names the thing and the next step; programs look at `code` only. */
export const WireError = z.object({
  code: ErrorCode,
  message: z.string(),
  outcome: Outcome,
  retry: Retry,
  fault: Fault,
  details: z.record(z.string(), z.unknown()).default({}),
  traceId: z.string().optional(),
});
export type WireError = z.infer<typeof WireError>;

type Overrides = {
  readonly details?: Record<string, unknown>;
  readonly outcome?: Outcome;
  readonly retry?: Retry;
  readonly fault?: Fault;
  readonly traceId?: string;
};

/** Builds a wire error from its registry row; overrides only where one occurrence differs from its kind. */
export const wireError = (code: ErrorCode, message: string, overrides: Overrides = {}): WireError => {
  const { fault, retry, outcome } = ERRORS[code];
  return { code, message, outcome, retry, fault, ...overrides, details: overrides.details ?? {} };
};

/** A wire error thrown inside a shell or given to a user of the SDK. Deciders return errors as data instead. */
export class DsecError extends Error {
  readonly code: ErrorCode;
  readonly outcome: Outcome;
  readonly retry: Retry;
  readonly fault: Fault;
  readonly details: Record<string, unknown>;
  readonly traceId: string | undefined;

  constructor(error: WireError, options?: { cause?: unknown }) {
    super(error.message, options);
    this.name = 'DsecError';
    this.code = error.code;
    this.outcome = error.outcome;
    this.retry = error.retry;
    this.fault = error.fault;
    this.details = error.details;
    this.traceId = error.traceId;
  }

  static of(code: ErrorCode, message: string, overrides: Overrides & { cause?: unknown } = {}): DsecError {
    const { cause, ...rest } = overrides;
    return new DsecError(wireError(code, message, rest), cause === undefined ? undefined : { cause });
  }

  toWire(): WireError {
    const { code, message, outcome, retry, fault, details, traceId } = this;
    return { code, message, outcome, retry, fault, details, ...(traceId === undefined ? {} : { traceId }) };
  }
}

/** Turns whatever was thrown into a wire error; an unforeseen exception is `INTERNAL` and keeps its message. */
export const toWireError = (thrown: unknown): WireError =>
  thrown instanceof DsecError ? thrown.toWire() : wireError('INTERNAL', thrown instanceof Error ? thrown.message : String(thrown));
