/** Calls the control plane: `dsec.api.<project>.<verb>`, JSON, validated in both directions. */
import { API, ApiAnswer, type ApiRequest, type ApiResponse, type ApiVerb } from '#bus/api/schema.ts';
import { encode, invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import { apiSubject } from '#bus/subjects.ts';
import { safeParse } from '#bus/proof.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Bus } from './bus.ts';
import type { Clock } from './clock.ts';
import { callWithRetry } from './retry.ts';
import { traced } from './tracing.ts';
import type { Waits } from './waits.ts';

export type CallOptions = { readonly giveUpAfterMs?: number | undefined; readonly signal?: AbortSignal | undefined };

const { attemptTimeoutMs, decisionTimeoutMs, forkTimeoutMs, listTimeoutMs } = SDK_LIMITS;
/** Verbs that take longer than a look: they wait for a node's decision, a projection, or a batch of commits. */
const SLOW_VERBS: Partial<Record<ApiVerb, number>> = {
  list: listTimeoutMs,
  stop: decisionTimeoutMs,
  delete: decisionTimeoutMs,
  pause: decisionTimeoutMs,
  resume: decisionTimeoutMs,
  snapshot: decisionTimeoutMs,
  snapshots: listTimeoutMs,
  fork: forkTimeoutMs,
  deleteSnapshot: attemptTimeoutMs,
  extend: decisionTimeoutMs,
  pauseMany: listTimeoutMs,
  resumeMany: listTimeoutMs,
  listRollouts: listTimeoutMs,
  startRollouts: decisionTimeoutMs,
};

export class ApiClient {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly project: ProjectName;
  readonly #waits: Waits | undefined;

  constructor(bus: Bus, clock: Clock, project: ProjectName, waits?: Waits) {
    this.#waits = waits;
    this.#bus = bus;
    this.#clock = clock;
    this.project = project;
  }

  /** Every verb is idempotent: looking changes nothing, and the others carry a key. */
  async call<V extends ApiVerb>(verb: V, request: Omit<ApiRequest<V>, 'v'>, options: CallOptions = {}): Promise<ApiResponse<V>> {
    const checked = safeParse(API[verb].request, { v: 1, ...request });
    if (!checked.success) throw invalid('INVALID_ARGUMENT', verb, checked.error);
    const payload = encode(verb, checked.data);
    const policy = {
      what: verb,
      unavailable: 'API_UNAVAILABLE',
      attemptTimeoutMs: SLOW_VERBS[verb] ?? attemptTimeoutMs,
      giveUpAfterMs: options.giveUpAfterMs ?? SDK_LIMITS.callTimeoutMs,
      idempotent: true,
      signal: options.signal,
      wait: this.#waits?.begin('apiserver'),
    } as const;
    const subject = apiSubject(this.project, verb);
    return traced(`sdk.${verb}`, { 'dsec.project': this.project }, (headers) =>
      callWithRetry(this.#clock, policy, async (timeoutMs) => readAnswer(verb, await this.#bus.request(subject, payload, timeoutMs, headers))),
    );
  }
}

const readAnswer = <V extends ApiVerb>(verb: V, bytes: Uint8Array): ApiResponse<V> => {
  const answer = safeParse(ApiAnswer, parseJson(verb, bytes));
  if (!answer.success) throw invalid('MALFORMED_MESSAGE', `answer to ${verb}`, answer.error);
  if (!answer.data.ok) throw new DsecError(answer.data.error);
  const data = safeParse(API[verb].response, answer.data.data);
  if (!data.success) throw invalid('MALFORMED_MESSAGE', `answer to ${verb}`, data.error);
  return data.data as ApiResponse<V>;
};

const parseJson = (verb: string, bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch (cause) {
    throw DsecError.of('MALFORMED_MESSAGE', `answer to ${verb} is not JSON; platform and SDK may be of different versions`, { cause });
  }
};
