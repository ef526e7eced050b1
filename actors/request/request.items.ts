/**
 * Items of a request: given to nodes, moved to others when refused, a bounded number of times, and, in chunks of groups, followed
 * until they run. Every report names the attempt it is about; one about an earlier attempt changes nothing.
 */
import { type ErrorCode, type WireError, wireError } from '#bus/errors.ts';
import { type EdgeName, type RequestId, RequestId as RequestIdSchema, sandboxIdFor } from '#bus/ids.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import type { Assignment, RequestCommand, RequestEvent, RequestItem, RequestState } from '#bus/request/schema.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { accept, type Decision, ignore, reject } from '../kernel/definition.ts';
import { REQUEST_LIMITS } from './limits.ts';

type RequestDecision = Decision<RequestEvent>;
type Place = Extract<RequestCommand, { type: 'PlaceSandboxes' }>;
type Report = Extract<RequestCommand, { type: 'ReportBatch' }>;
type News = { readonly index: number; readonly attempt: number };

export const place = (command: Place, at: TimestampMs): RequestDecision => {
  const { requestId, project, key, bodyHash, count, spec, forkedFrom, deadlineAt, choices, quota, chunkOf } = command;
  if (!RequestIdSchema.safeParse(requestId).success || count < 1 || choices.length !== count)
    return reject(
      wireError('INVALID_ARGUMENT', `request ${requestId} asks for ${count} sandboxes and has ${choices.length} choices; placement must give one each`),
    );
  const keyExpiresAt = addMs(at, KEY_LIMITS.requestKeyLifetimeMs as DurationMs);
  const quotaLease = quota?.lease ?? null;
  const asked = { id: requestId, project, key, bodyHash, count, spec, forkedFrom, deadlineAt, chunkOf };
  const accepted: RequestEvent = { type: 'RequestAccepted', at, ...asked, keyExpiresAt, quotaLease };
  if (at >= deadlineAt) return accept(accepted, ...choices.map((_, index) => unplaceable(index, tooLate(requestId), at)));

  const assignments: Assignment[] = [];
  const unplaced: RequestEvent[] = [];
  for (const [index, edge] of choices.entries()) {
    if (quota?.error && index >= quota.count) unplaced.push(unplaceable(index, quota.error, at));
    else if (edge) assignments.push(assignmentOf(requestId, index, 0, edge));
    else unplaced.push(unplaceable(index, noCapacity(null, spec), at));
  }
  const assigned: RequestEvent[] = assignments.length > 0 ? [{ type: 'SandboxesAssigned', at, assignments }] : [];
  return accept(accepted, ...assigned, ...unplaced);
};

export const reportBatch = (state: RequestState, report: Report, at: TimestampMs): RequestDecision => {
  const { refused, held, running, failed, choices } = report;
  const foreign = [...refused, ...held, ...running, ...failed].find(({ index }) => !state.items[index]);
  if (foreign)
    return reject(wireError('INVALID_ARGUMENT', `request ${state.id} has ${state.items.length} items, none with index ${foreign.index}; nothing was changed`));
  const events: RequestEvent[] = [];
  const open = new Set(state.items.flatMap((item, index) => (isOpen(item) ? [index] : [])));
  const take = (news: News): RequestItem | undefined => {
    const item = state.items[news.index];
    return item && item.attempt === news.attempt && open.has(news.index) ? item : undefined;
  };
  const fresh = (all: readonly News[], wanted: (item: RequestItem) => boolean): number[] =>
    all.flatMap((news) => {
      const item = take(news);
      return item && wanted(item) ? [news.index] : [];
    });

  const run = fresh(running, () => true);
  for (const index of run) open.delete(index); // what runs was not refused, whatever else is said of it
  events.push(...refusals(state, refused, choices, take, open, at));
  const nowHeld = fresh(held, ({ progress }) => progress === 'sent');
  if (nowHeld.length > 0) events.push({ type: 'SandboxesHeld', at, indices: nowHeld });
  if (run.length > 0) events.push({ type: 'SandboxesRun', at, indices: run });
  for (const news of failed) {
    if (!take(news)) continue;
    open.delete(news.index);
    events.push({ type: 'SandboxDidNotRun', at, index: news.index, error: news.error });
  }
  const [first, ...rest] = events;
  return first ? accept(first, ...rest) : ignore('nothing in this report is new');
};

export const overQuota = (state: RequestState, { error }: Extract<RequestCommand, { type: 'ReportOverQuota' }>, at: TimestampMs): RequestDecision => {
  const [first, ...rest] = state.items.flatMap((item, index) => (item.error || item.progress !== 'sent' ? [] : [unplaceable(index, error, at)]));
  return first ? accept(first, ...rest) : ignore('every item has been given up already');
};

const isOpen = ({ edge, error, progress }: RequestItem): boolean => edge !== null && error === null && progress !== 'run';

const refusals = (
  state: RequestState,
  refused: Report['refused'],
  choices: Report['choices'],
  take: (news: News) => RequestItem | undefined,
  open: Set<number>,
  at: TimestampMs,
): RequestEvent[] => {
  const late = at >= state.deadlineAt;
  const assignments: Assignment[] = [];
  const givenUp: RequestEvent[] = [];
  for (const [n, news] of refused.entries()) {
    const item = take(news);
    if (item?.progress !== 'sent') continue; // what a node holds it has not refused
    open.delete(news.index);
    const choice = choices[n] ?? null;
    if (choice && !late && mayTry(item, choice, news.error)) assignments.push(assignmentOf(state.id, news.index, news.attempt + 1, choice));
    else givenUp.push(unplaceable(news.index, finalError(state.id, news.error, late), at));
  }
  return assignments.length > 0 ? [{ type: 'SandboxesAssigned', at, assignments }, ...givenUp] : givenUp;
};

/** A refusal that says what is wrong with the request stays as it is; one about room becomes the fleet's answer. */
const finalError = (requestId: RequestId, last: WireError, late: boolean): WireError => {
  if (!isAboutCapacity(last)) return last;
  return late ? tooLate(requestId) : noCapacity(last, null);
};

const mayTry = (item: RequestItem, choice: EdgeName, error: WireError): boolean =>
  item.attempt + 1 < REQUEST_LIMITS.attemptsPerItem && choice !== item.edge && !item.refusedBy.includes(choice) && mayHelp(error);

/** What is wrong with the request itself is wrong on every node; what one node lacks, another may have. */
const mayHelp = ({ fault, retry }: WireError): boolean => retry !== 'never' || fault === 'infra';

const CAPACITY_CODES: ReadonlySet<ErrorCode> = new Set(['NO_CAPACITY', 'NODE_FULL', 'OVERLOADED']);
const isAboutCapacity = ({ code }: WireError): boolean => CAPACITY_CODES.has(code);

/** Keeps what the last node said, or what was asked for, so that a person sees which limit was met. */
const noCapacity = (last: WireError | null, spec: SandboxSpec | null): WireError => {
  const asked = spec ? ` (asked for ${spec.limits.memoryMiB} MiB of memory, ${spec.limits.cpuMillis / 1_000} CPUs, ${spec.limits.pids} processes)` : '';
  const message = `no node has room for this sandbox; try again later or ask for less${last ? ` (last refusal: ${last.message})` : asked}`;
  const details = last ? { lastCode: last.code, ...last.details } : spec ? { asked: spec.limits } : {};
  return wireError('NO_CAPACITY', message, last ? { details, retry: last.retry } : { details });
};
export const tooLate = (requestId: RequestId): WireError =>
  wireError('DEADLINE_EXCEEDED', `request ${requestId} could not be placed before its deadline; create again with a longer timeout`, {
    outcome: 'not_applied',
  });

const unplaceable = (index: number, error: WireError, at: TimestampMs): RequestEvent => ({ type: 'SandboxUnplaceable', at, index, error });
const assignmentOf = (requestId: RequestId, index: number, attempt: number, edge: EdgeName): Assignment => ({
  index,
  attempt,
  edge,
  sandboxId: sandboxIdFor(requestId, index, attempt, edge),
});
