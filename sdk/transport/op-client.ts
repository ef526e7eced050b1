/** Calls the data plane: `dsec.op.<project>.<edge>.<sandbox>.<op>`, op frames, answered by the owning Edge. */
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName, SandboxId } from '#bus/ids.ts';
import { packOp, unpackOp } from '#bus/op/codec.ts';
import { OPS, OpAnswer, type OpName, type OpRequest, type OpResponse } from '#bus/op/schema.ts';
import { opSubject } from '#bus/subjects.ts';
import { safeParse } from '#bus/proof.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Bus } from './bus.ts';
import type { Clock } from './clock.ts';
import type { Losses } from './losses.ts';
import { callWithRetry } from './retry.ts';
import { traced } from './tracing.ts';
import type { Waits } from './waits.ts';

export type OpCallOptions = {
  readonly body?: Uint8Array;
  /** How long the Edge may hold the answer back, when the op is a long poll. */
  readonly waitMs?: number;
  /** False for what must not be done twice and has no key: a signal. */
  readonly idempotent?: boolean;
  /** How long one attempt may take, where that is longer than the usual. */
  readonly attemptTimeoutMs?: number;
  readonly giveUpAfterMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
};
export type OpResult<O extends OpName> = { readonly data: OpResponse<O>; readonly body: Uint8Array };

export class OpClient {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #project: ProjectName;
  readonly #losses: Losses;
  readonly #waits: Waits | undefined;

  constructor(bus: Bus, clock: Clock, project: ProjectName, losses: Losses, waits?: Waits) {
    this.#losses = losses;
    this.#waits = waits;
    this.#bus = bus;
    this.#clock = clock;
    this.#project = project;
  }

  async call<O extends OpName>(id: SandboxId, op: O, request: Omit<OpRequest<O>, 'v'>, options: OpCallOptions = {}): Promise<OpResult<O>> {
    const waitMs = options.waitMs ?? 0;
    const poll = options.waitMs === undefined ? {} : { waitMs };
    const checked = safeParse(OPS[op].request, { v: 1, ...request, ...poll });
    if (!checked.success) throw invalid('INVALID_ARGUMENT', op, checked.error);
    const frame = options.body ? packOp(checked.data, options.body) : packOp(checked.data);
    const policy = {
      what: `${op} in ${id}`,
      unavailable: 'EDGE_UNAVAILABLE',
      attemptTimeoutMs: waitMs > 0 ? waitMs + SDK_LIMITS.longPollSlackMs : (options.attemptTimeoutMs ?? SDK_LIMITS.attemptTimeoutMs),
      giveUpAfterMs: waitMs + (options.giveUpAfterMs ?? SDK_LIMITS.outageMs),
      idempotent: options.idempotent ?? true,
      signal: options.signal,
    } as const;
    const subject = opSubject(this.#project, id, op);
    return traced(`sdk.${op}`, { 'dsec.project': this.#project, 'dsec.sandbox': id }, (headers) =>
      this.#losses.guard(id, (beforeRepeat) =>
        callWithRetry(this.#clock, { ...policy, beforeRepeat, wait: this.#waits?.begin(id) }, async (timeoutMs) =>
          readAnswer(op, await this.#bus.request(subject, frame, timeoutMs, headers)),
        ),
      ),
    );
  }
}

const readAnswer = <O extends OpName>(op: O, frame: Uint8Array): OpResult<O> => {
  const { meta, body } = unpackOp(frame);
  const answer = safeParse(OpAnswer, meta);
  if (!answer.success) throw invalid('MALFORMED_MESSAGE', `answer to ${op}`, answer.error);
  if (!answer.data.ok) throw new DsecError(answer.data.error);
  const data = safeParse(OPS[op].response, answer.data.data);
  if (!data.success) throw invalid('MALFORMED_MESSAGE', `answer to ${op}`, data.error);
  return { data: data.data as OpResponse<O>, body };
};

/** The waits of a row of long polls: grows, so that a short command's poll is soon repeated after a crash of its Edge. */
export const longPollMs = (n: number): number => Math.min(SDK_LIMITS.longPollFirstMs + n * 1_000, SDK_LIMITS.longPollLastMs);
