/**
 * Translation of what NATS and JetStream answer into our errors and outcomes. Recognised by number, never by text.
 *
 * The rule for writes: only answers that prove that nothing was stored are `not_applied`; everything that is not known
 * here is `unknown`, because repeating the same message id is always safe.
 */
import { DsecError, type WireError, wireError } from '#bus/errors.ts';

/** `err_code` of JetStream API answers. */
export const JS = {
  badRequest: 10003,
  noSuitablePeers: 10005,
  consumerNotFound: 10014,
  maximumConsumers: 10026,
  messageNotFound: 10037,
  storageExceeded: 10047,
  streamConfigInvalid: 10052,
  streamNameInUse: 10058,
  streamNotFound: 10059,
  streamNotMatch: 10060,
  streamSubjectOverlap: 10065,
  messageTooLarge: 10054,
  headersTooLarge: 10097,
  wrongLastSequence: 10071,
  replicasNeedCluster: 10074,
  storeFailed: 10077,
  consumerFilterOutside: 10093,
  consumerNotUnique: 10100,
  duplicateInProcess: 10158,
  wrongLastSequenceConstant: 10164,
  ttlInvalid: 10165,
  ttlDisabled: 10166,
} as const;

/** `code` of status messages, which have no body. */
export const STATUS = { heartbeat: 100, notFound: 404, timeout: 408, conflict: 409, noResponders: 503 } as const;

export type ApiError = { readonly code: number; readonly err_code: number; readonly description: string };

/** Why a request has no answer. */
export type NoAnswer = 'timeout' | 'disconnected' | 'no_responders' | 'overloaded' | 'closed';

const NO_ANSWER: Record<NoAnswer, string> = {
  timeout: 'did not answer in time',
  disconnected: 'is not connected',
  no_responders: 'has nobody who answers: the stream is missing, or its leader is being elected',
  overloaded: 'has too many unanswered requests from this process',
  closed: 'was closed by this process',
};

export const noAnswerError = (what: string, why: NoAnswer): WireError => {
  const message = `${what}: the bus ${NO_ANSWER[why]}; repeat it with the same id`;
  return why === 'overloaded'
    ? wireError('OVERLOADED', message, { outcome: 'unknown', retry: 'same' })
    : wireError('BUS_UNAVAILABLE', message, { details: { reason: why } });
};

/** A refusal that proves that the message was not stored and never will be in this form. */
const NEVER_STORED: ReadonlySet<number> = new Set([JS.badRequest, JS.messageTooLarge, JS.headersTooLarge, JS.streamNotMatch, JS.ttlInvalid, JS.ttlDisabled]);

export type Refusal =
  | { readonly outcome: 'conflict' }
  | { readonly outcome: 'rejected'; readonly error: WireError }
  | { readonly outcome: 'unknown'; readonly error: WireError };

/** What an error in a publish acknowledgement means for the message. */
export const publishRefusal = (subject: string, { err_code: code, description }: ApiError): Refusal => {
  const details = { subject, apiCode: code };
  if (code === JS.wrongLastSequence) return { outcome: 'conflict' };
  if (code === JS.messageTooLarge || code === JS.headersTooLarge) {
    return { outcome: 'rejected', error: wireError('PAYLOAD_TOO_LARGE', `${subject}: ${description}; send less in one message`, { details }) };
  }
  if (NEVER_STORED.has(code))
    return { outcome: 'rejected', error: wireError('INVALID_ARGUMENT', `${subject}: the stream refuses the message: ${description}`, { details }) };
  if (code === JS.storeFailed) {
    const message = `${subject}: the stream cannot store: ${description}; its limit is reached or its disk is full. Repeat with the same id`;
    return { outcome: 'unknown', error: wireError('OVERLOADED', message, { details, outcome: 'unknown', retry: 'same' }) };
  }
  return { outcome: 'unknown', error: wireError('BUS_UNAVAILABLE', `${subject}: ${description}; repeat it with the same id`, { details }) };
};

/** Thrown by `JetStreamApi.call` when the server answers with an error; callers look at `apiCode`. */
export class ApiRefusal extends DsecError {
  readonly apiCode: number;

  constructor(what: string, { err_code: apiCode, description }: ApiError) {
    super(wireError(CODE_OF_REFUSAL.get(apiCode) ?? 'BUS_UNAVAILABLE', `${what}: ${description}`, { details: { apiCode } }));
    this.apiCode = apiCode;
  }
}

/** Refusals that no waiting mends; every other one may pass with an election or a restart. */
const CODE_OF_REFUSAL: ReadonlyMap<number, 'BUS_MISCONFIGURED'> = new Map(
  [
    JS.badRequest,
    JS.noSuitablePeers,
    JS.maximumConsumers,
    JS.storageExceeded,
    JS.streamConfigInvalid,
    JS.streamNameInUse,
    JS.streamNotFound,
    JS.streamSubjectOverlap,
    JS.replicasNeedCluster,
    JS.consumerFilterOutside,
    JS.consumerNotUnique,
  ].map((code) => [code, 'BUS_MISCONFIGURED']),
);
