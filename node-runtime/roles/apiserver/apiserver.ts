/**
 * The apiserver: the only thing clients talk to. @paper §3.2
 *
 * Keeps no per-sandbox state: the owner of a sandbox is read from its id, its newest state from the log. Every request is
 * checked (subject, size, version, fields, limits, names of images) before anything is stored; what is stored is a
 * command, and the answer says whether it was. Any number of instances share the queue group.
 */
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { VERB_DEMANDS } from '#bus/api/actions.ts';
import { API, API_SERVICES, type ApiAnswer, type ApiParsed, type ApiResponse, type ApiVerb, isApiVerb } from '#bus/api/schema.ts';
import { encode, invalid } from '#bus/envelope.ts';
import { DsecError, toWireError } from '#bus/errors.ts';
import { ProjectName } from '#bus/ids.ts';
import { API_FILTER, API_QUEUE, apiQueueOf, apiVerbFilter, parseApiSubject, SYSTEM_PROJECT } from '#bus/subjects.ts';
import { TRACEPARENT_HEADER, traceIdOf } from '#bus/trace-context.ts';
import { safeParse } from '#bus/proof.ts';
import { refusalOf } from '#actors/project/authority.ts';
import { SpanKind } from '@opentelemetry/api';
import { traced } from '../../tracing/spans.ts';
import type { Log } from '../../log/log.ts';
import type { Authenticate, Identity } from '../identity.ts';
import { APISERVER_LIMITS } from './limits.ts';

/** What a verb may know about the call. */
export type Caller = Identity & { readonly project: ProjectName; readonly traceparent: string | undefined };
export type Verbs<V extends ApiVerb = ApiVerb> = { readonly [K in V]: (request: ApiParsed<K>, caller: Caller) => Promise<ApiResponse<K>> };
/** Verbs that no other role answers. */
export type ApiserverVerb = Exclude<ApiVerb, (typeof API_SERVICES)[keyof typeof API_SERVICES][number]>;
type AnyVerbs = Partial<Verbs>;

/** `service`: a role that answers its own verbs only; without it, everything that is nobody else's, unknown verbs included. */
export type ApiserverOptions = {
  readonly connection: NatsConnection;
  readonly verbs: AnyVerbs;
  readonly log: Log;
  readonly authenticate: Authenticate;
  readonly service?: keyof typeof API_SERVICES;
};

const SERVED_ELSEWHERE: ReadonlySet<string> = new Set(Object.values(API_SERVICES).flat());

export const serveApi = ({ connection, verbs, log, authenticate, service }: ApiserverOptions): { close(): Promise<void> } => {
  let inFlight = 0;
  const options = {
    queue: service ? apiQueueOf(service) : API_QUEUE,
    callback: (error: Error | null, message: Msg) => {
      if (error || !message.reply) return;
      if (!service && SERVED_ELSEWHERE.has(parseApiSubject(message.subject)?.verb ?? '')) return;
      if (inFlight >= APISERVER_LIMITS.inFlight) {
        respond(message, failure(DsecError.of('OVERLOADED', 'the apiserver has too many requests in flight; try again', { details: { retryAfterMs: 500 } })));
        return;
      }
      inFlight += 1;
      void answer({ verbs, log, authenticate }, message)
        .catch((thrown) => encode('answer', failure(thrown)))
        .then((bytes) => message.respond(bytes))
        .finally(() => {
          inFlight -= 1;
        });
    },
  };
  const filters = service ? API_SERVICES[service].map(apiVerbFilter) : [API_FILTER];
  const subscriptions = filters.map((filter) => connection.subscribe(filter, options));
  return {
    close: async () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
    },
  };
};

const respond = (message: Msg, answered: ApiAnswer): void => {
  message.respond(encode('answer', answered));
};

const failure = (thrown: unknown): ApiAnswer => ({ ok: false, error: toWireError(thrown) });

type Serving = Pick<ApiserverOptions, 'verbs' | 'log' | 'authenticate'>;

const answer = async (serving: Serving, message: Msg): Promise<Uint8Array> => {
  const { log } = serving;
  const startedAt = performance.now();
  const target = parseApiSubject(message.subject);
  try {
    const data = await call(serving, message, target);
    log.debug('api.answered', { ...lineOf(message, startedAt), outcome: 'applied' });
    return encode('answer', { ok: true, data } satisfies ApiAnswer);
  } catch (thrown) {
    const error = toWireError(thrown);
    const { code, outcome } = error;
    log.info('api.refused', { ...lineOf(message, startedAt), outcome, code, message: error.message.slice(0, 300) });
    return encode('answer', failure(thrown));
  }
};

/** Verbs that nobody knows are told apart by nobody: a stranger chooses their names. */
const lineOf = ({ subject, headers }: Msg, startedAt: number) => {
  const verb = parseApiSubject(subject)?.verb ?? '';
  const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
  return { verb: isApiVerb(verb) ? verb : 'unknown', durationMs, traceId: traceIdOf(headers?.get(TRACEPARENT_HEADER)) };
};

const call = async ({ verbs, authenticate }: Serving, message: Msg, target: ReturnType<typeof parseApiSubject>): Promise<unknown> => {
  const project = ProjectName.safeParse(target?.project);
  if (!target || !project.success)
    throw DsecError.of('INVALID_ARGUMENT', 'the subject names no project: project names are lower-case letters, digits, "-" and "_"');
  if (project.data === SYSTEM_PROJECT) throw DsecError.of('FORBIDDEN', `project ${SYSTEM_PROJECT} is the platform's own`);
  if (!isApiVerb(target.verb)) throw DsecError.of('UNKNOWN_VERB', `there is no verb ${target.verb.slice(0, 64)}; known: ${Object.keys(API).join(', ')}`);
  const identity = authenticate(message, project.data);
  const refused = refusalOf(VERB_DEMANDS[target.verb], identity, project.data, target.verb);
  if (refused) throw new DsecError(refused);
  const request = parseRequest(target.verb, message.data);
  const handler = verbs[target.verb] as ((request: unknown, caller: Caller) => Promise<unknown>) | undefined;
  if (!handler) throw DsecError.of('NOT_SUPPORTED', `verb ${target.verb} is not served here`);
  const span = { parent: message.headers?.get(TRACEPARENT_HEADER) || undefined, kind: SpanKind.SERVER, attributes: { 'dsec.project': project.data } };
  return traced(`api.${target.verb}`, span, (traceparent) => handler(request, { ...identity, project: project.data, traceparent }));
};

const parseRequest = (verb: ApiVerb, data: Uint8Array): unknown => {
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch (cause) {
    throw DsecError.of('MALFORMED_MESSAGE', `${verb}: the request is not UTF-8 JSON`, { cause });
  }
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) throw DsecError.of('MALFORMED_MESSAGE', `${verb}: the request is not a JSON object`);
  const version = (raw as { v?: unknown }).v;
  if (version !== 1)
    throw DsecError.of('UNSUPPORTED_VERSION', `${verb}: request version ${JSON.stringify(version)?.slice(0, 40)} is not known; this platform speaks version 1`);
  const parsed = safeParse(API[verb].request, raw);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', verb, parsed.error);
  return parsed.data;
};
