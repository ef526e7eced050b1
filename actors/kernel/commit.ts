/** Commits as the host makes them: built from a decision, named for the broker, recognised when they come back. */
import { hash } from 'node:crypto';
import { type Commit, COMMIT_VERSION } from '#bus/envelope.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { AppendRequest, StoredCommit } from '../ports/event-log.ts';

/** Where a command comes from and when; `sequence` is its place in COMMANDS when it was taken from there. */
export type CommandMeta = {
  readonly commandId: string;
  readonly correlationId: string;
  readonly causationId?: string | undefined;
  readonly principal: string;
  readonly traceparent?: string | undefined;
  readonly at: TimestampMs;
  readonly sequence?: number | undefined;
};

/** What was decided: events, and the state they lead to, under the version `schema` of their kind. */
export type Decided = { readonly schema: number; readonly events: readonly { readonly type: string }[]; readonly state: object };

export const appendRequestOf = (address: ActorAddress, stored: StoredCommit | null, meta: CommandMeta, { schema, events, state }: Decided): AppendRequest => {
  const commit: Commit = {
    v: COMMIT_VERSION,
    kind: address.kind,
    actorId: address.id,
    version: (stored?.commit.version ?? 0) + 1,
    at: meta.at,
    commandId: meta.commandId,
    correlationId: meta.correlationId,
    ...(meta.causationId === undefined ? {} : { causationId: meta.causationId }),
    principal: meta.principal,
    ...(meta.traceparent === undefined ? {} : { traceparent: meta.traceparent }),
    lastCommandSequence: Math.max(stored?.commit.lastCommandSequence ?? 0, meta.sequence ?? 0),
    schema,
    events: [...events],
    state: state as Commit['state'],
  };
  const expectedSequence = stored?.sequence ?? 0;
  return { address, commit, expectedSequence, messageId: messageIdOf(address, expectedSequence, commit) };
};

/**
 * Equal for every repetition of one append and for nothing else. The digest matters when a process dies with an append under
 * way and the next one decides the same command differently (another slot, another time): the broker must not take the
 * second for a repetition of the first. What was decided is in the events; the state follows from them.
 */
const messageIdOf = ({ project, id }: ActorAddress, expectedSequence: number, { commandId, at, schema, events }: Commit): string => {
  const digest = hash('sha256', JSON.stringify([schema, events])).slice(0, 16);
  return `${project}:${id}:${expectedSequence}:${commandId}:${at}:${digest}`;
};

/**
 * Whether a stored commit answers the command that we tried to append: it is ours (the broker may answer a repetition with a
 * conflict), or another process decided the same command. Either way the command is in the log, and what is there counts.
 */
export const isSameCommand = (stored: Commit, tried: Commit): boolean =>
  stored.version === tried.version && stored.commandId === tried.commandId && stored.correlationId === tried.correlationId;
