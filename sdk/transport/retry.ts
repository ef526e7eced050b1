/**
 * Decides which failures of one attempt are repeated, how long to wait between, and what the caller is told at the end.
 *
 * A repetition carries the same key, so that it can never do the thing twice. A call that is not idempotent is repeated
 * only when it certainly did not happen.
 */
import { DsecError, type ErrorCode } from '#bus/errors.ts';
import { SDK_LIMITS } from '../limits.ts';
import { BusFailure } from './bus.ts';
import { type Clock, abortable } from './clock.ts';
import type { Wait } from './waits.ts';

export type CallPolicy = {
  /** For messages: `create`, `exec in sb-…`. */
  readonly what: string;
  /** Who did not answer when nobody did. */
  readonly unavailable: 'API_UNAVAILABLE' | 'EDGE_UNAVAILABLE';
  readonly attemptTimeoutMs: number;
  readonly giveUpAfterMs: number;
  readonly idempotent: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called before an attempt is repeated; what it throws ends the call. */
  readonly beforeRepeat?: () => Promise<void>;
  /** Hears of every attempt that is going to be repeated, and how the call ended after the first of them. */
  readonly wait?: Wait | undefined;
};

/** States of the platform that pass by themselves within seconds. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['EDGE_UNAVAILABLE', 'API_UNAVAILABLE', 'BUS_UNAVAILABLE', 'OUTCOME_UNKNOWN', 'EDGE_FENCED', 'OVERLOADED']);

/** A sandbox whose node has just restarted is not reachable yet, and says so with `later`. */
const passes = (error: DsecError): boolean => PASSING.has(error.code) || (error.code === 'INVALID_STATE' && error.retry === 'later');

/** `DEADLINE_EXCEEDED` is repeated only when it was one attempt's own time-out, not an answer. */
export const mayRepeat = (error: DsecError, idempotent: boolean, answered: boolean): boolean => {
  if (!idempotent && error.outcome !== 'not_applied') return false;
  return passes(error) || (!answered && error.code === 'DEADLINE_EXCEEDED');
};

/** Doubles from `retryFirstMs` to `retryMaxMs`; between half and the whole of it, so that a crowd does not march in step. */
export const backoffMs = (attempt: number, random: number): number => {
  const ceiling = Math.min(SDK_LIMITS.retryFirstMs * 2 ** Math.min(attempt, 10), SDK_LIMITS.retryMaxMs);
  return ceiling / 2 + (random * ceiling) / 2;
};

/** An overloaded platform says how long it wants to be left alone: that, and up to half of it more, so that not all come back at once. */
export const pauseMs = (error: DsecError, attempt: number, random: number): number => {
  const asked = Number(error.details['retryAfterMs']);
  if (!(asked > 0)) return backoffMs(attempt, random);
  return Math.round(Math.min(asked, SDK_LIMITS.retryAfterMaxMs) * (1 + random / 2));
};

/** The one place where a failure of the bus becomes an error of the platform. */
export const translate = (thrown: unknown, policy: Pick<CallPolicy, 'what' | 'unavailable'>): DsecError => {
  if (thrown instanceof DsecError) return thrown;
  if (!(thrown instanceof BusFailure))
    return DsecError.of('INTERNAL', `${policy.what}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, { cause: thrown });
  const { what, unavailable } = policy;
  const silent = unavailable === 'API_UNAVAILABLE' ? 'the apiserver' : "the sandbox's Edge";
  switch (thrown.kind) {
    case 'no_responders': {
      const who =
        unavailable === 'API_UNAVAILABLE'
          ? 'no apiserver answers; check that the platform is up (`dsec up`)'
          : "the sandbox's Edge does not answer; it may be restarting";
      return DsecError.of(unavailable, `${what}: ${who}`, { outcome: 'not_applied', cause: thrown });
    }
    case 'timeout':
      return DsecError.of('DEADLINE_EXCEEDED', `${what}: no answer in time from ${silent}; repeat with the same key`, { retry: 'same', cause: thrown });
    case 'disconnected':
      return DsecError.of('BUS_UNAVAILABLE', `${what}: the connection to the bus is down; it is being reopened`, { cause: thrown });
    case 'forbidden':
      return DsecError.of('FORBIDDEN', `${what}: these credentials may not do this; check the project and the context file`, { cause: thrown });
    case 'overloaded':
      return DsecError.of('OVERLOADED', `${what}: ${thrown.message}`, { cause: thrown });
    case 'closed':
      return DsecError.of('CANCELLED', `${what}: the client was closed`, { cause: thrown });
  }
};

/** Repeats `attempt` until it answers, fails for good, or the policy's time is over. */
export const callWithRetry = async <T>(clock: Clock, policy: CallPolicy, attempt: (timeoutMs: number) => Promise<T>): Promise<T> => {
  const giveUpAt = clock.now() + policy.giveUpAfterMs;
  let maybeApplied = false;
  let timeouts = 0;
  let answered = false;
  try {
    for (let n = 0; ; n += 1) {
      const patienceMs = policy.attemptTimeoutMs * 2 ** Math.min(timeouts, 2);
      try {
        const answer = await abortable(attempt(Math.max(1, Math.min(patienceMs, giveUpAt - clock.now()))), policy.signal);
        answered = true;
        return answer;
      } catch (thrown) {
        const error = translate(thrown, policy);
        answered = thrown instanceof DsecError && !passes(thrown);
        if (thrown instanceof BusFailure && thrown.kind === 'timeout') timeouts += 1;
        maybeApplied ||= error.outcome === 'unknown';
        const delayMs = pauseMs(error, n, clock.random());
        const repeat = mayRepeat(error, policy.idempotent, thrown instanceof DsecError) && clock.now() + delayMs < giveUpAt;
        if (!repeat) throw maybeApplied && error.outcome === 'not_applied' && passes(error) ? withOutcomeUnknown(error) : error;
        policy.wait?.failed(error, giveUpAt);
        await policy.beforeRepeat?.();
        await clock.sleep(delayMs, policy.signal);
      }
    }
  } finally {
    policy.wait?.ended(answered);
  }
};

/** The last attempt certainly did nothing, an earlier one may have. */
const withOutcomeUnknown = (error: DsecError): DsecError => new DsecError({ ...error.toWire(), outcome: 'unknown' }, { cause: error.cause });
