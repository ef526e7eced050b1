/** Addresses and commits for tests of what stores them. The content of a state does not matter there. */
import type { Commit } from '#bus/envelope.ts';
import type { EdgeName, ProjectName, Shard } from '#bus/ids.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { AppendRequest } from '#actors/ports/event-log.ts';

export const anAddress = (shard: Shard, id: string, part: Partial<ActorAddress> = {}): ActorAddress => ({
  shard,
  project: 'alpha' as ProjectName,
  kind: 'sandbox',
  home: 'edge-a' as EdgeName,
  id,
  ...part,
});

export const aCommit = (address: ActorAddress, version: number, state: Record<string, unknown> = {}): Commit => ({
  v: 1,
  kind: address.kind,
  actorId: address.id,
  version,
  at: (1_700_000_000_000 + version) as TimestampMs,
  commandId: `command-${address.id}-${version}`,
  correlationId: `correlation-${address.id}`,
  principal: 'tester',
  lastCommandSequence: 0,
  schema: 1,
  events: [{ type: 'Happened', version }],
  state: { version, ...state },
});

/** The append of commit `version` after `expectedSequence`; `writer` tells two writers of the same version apart. */
export const anAppend = (
  address: ActorAddress,
  version: number,
  expectedSequence: number,
  writer = 'w',
  state: Record<string, unknown> = {},
): AppendRequest => ({
  address,
  commit: aCommit(address, version, { writer, ...state }),
  expectedSequence,
  messageId: `${address.project}:${address.id}:${expectedSequence}:${writer}-${version}`,
});
