/** The requests of roles on `dsec.iam.<verb>`: parsed, bounded, answered. */
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { encode, invalid } from '#bus/envelope.ts';
import { DsecError, toWireError } from '#bus/errors.ts';
import { isLendingVerb, LENDING, type LendingRequest, type LendingResponse, type LendingVerb } from '#bus/iam/quota-lending.ts';
import { IAM_FILTER, IAM_QUEUE, parseIamSubject } from '#bus/subjects.ts';
import type { Lending } from './lending.ts';
import { IAM_LIMITS } from './limits.ts';

type Handlers = { readonly [V in LendingVerb]: (request: LendingRequest<V>) => Promise<LendingResponse<V>> };

export const serveLending = (connection: NatsConnection, lending: Lending): { close(): void } => {
  const handlers: Handlers = {
    drawQuota: (request) => lending.draw(request),
    closeQuota: (request) => lending.closeLeases(request),
    inheritQuota: async (request) => lending.inherit(request),
    confirmQuota: (request) => lending.confirm(request),
  };
  let inFlight = 0;
  const subscription = connection.subscribe(IAM_FILTER, {
    queue: IAM_QUEUE,
    callback: (error, message) => {
      if (error || !message.reply) return;
      inFlight += 1;
      void answer(handlers, message, inFlight)
        .catch((thrown: unknown) => ({ ok: false as const, error: toWireError(thrown) }))
        .then((answered) => message.respond(encode('answer', answered)))
        .finally(() => {
          inFlight -= 1;
        });
    },
  });
  return { close: () => subscription.unsubscribe() };
};

const answer = async (handlers: Handlers, message: Msg, inFlight: number): Promise<{ ok: true; data: unknown }> => {
  if (inFlight > IAM_LIMITS.inFlight) throw DsecError.of('OVERLOADED', 'iam has too many requests in flight; ask again');
  const verb = parseIamSubject(message.subject) ?? '';
  if (!isLendingVerb(verb)) throw DsecError.of('UNKNOWN_VERB', `iam knows no ${verb.slice(0, 64)}`);
  const parsed = LENDING[verb].request.safeParse(JSON.parse(message.string()));
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', verb, parsed.error);
  return { ok: true, data: await (handlers[verb] as (request: unknown) => Promise<unknown>)(parsed.data) };
};
