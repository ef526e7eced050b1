/**
 * The messages that a request's state calls for: creates to Edges, chunks to their lane, reports and decisions between parents and
 * chunks. Every message's id follows from the request and the effect, so whoever sends it, and however often, sends the same.
 */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { bodyHashOf, chunkIdFor, messageIdOf } from '#bus/ids.ts';
import type { DecideChunk, ReportChunk } from '#bus/request/group.ts';
import type { PlaceSandboxes, RequestState } from '#bus/request/schema.ts';
import type { LaunchSandboxes, ReleaseSandboxes } from '#bus/sandbox/commands.ts';
import { createLaneSubject, edgeCommandSubject, laneOf, reportLaneSubject } from '#bus/subjects.ts';
import type { z } from 'zod';
import type { RequestEffect } from './request.effects.ts';

type Of<T extends RequestEffect['type']> = Extract<RequestEffect, { type: T }>;
export type RequestMessage = { readonly subject: string; readonly id: string; readonly data: CommandEnvelope['data'] };
export type Routes = { readonly laneCount: number; readonly shardCount: number };

export const messageOf = (effect: RequestEffect, state: RequestState, { laneCount, shardCount }: Routes): RequestMessage => ({
  ...contentOf(effect, state, { laneCount, shardCount }),
  id: messageIdOf(state.project, state.id, shortened(effect.key)),
});

const contentOf = (effect: RequestEffect, state: RequestState, { laneCount, shardCount }: Routes): Omit<RequestMessage, 'id'> => {
  const lane = laneOf(state.project, laneCount);
  switch (effect.type) {
    case 'ensureForwarded':
      return { subject: edgeCommandSubject(effect.edge, '_'), data: launchOf(effect, state) };
    case 'ensureReleased':
      return { subject: edgeCommandSubject(effect.edge, '_'), data: releaseOf(effect, state) };
    case 'ensureReported':
      return { subject: reportLaneSubject(lane), data: reportOf(effect, state) };
    case 'ensureChunkPlaced':
      return { subject: createLaneSubject(lane), data: placeOf(effect, state, shardCount) };
    case 'ensureChunkDecided':
      return { subject: reportLaneSubject(lane), data: decideOf(effect, state, shardCount) };
  }
};

/** Keys list the items they are about, and ids have a limit. */
const KEY_LENGTH_MAX = 60;
const shortened = (key: string): string => (key.length <= KEY_LENGTH_MAX ? key : `${key.slice(0, 27)}~${bodyHashOf(key)}`);

const itemsOf = ({ assignments }: Of<'ensureForwarded' | 'ensureReleased'>): LaunchSandboxes['items'] =>
  assignments.map(({ sandboxId, index, attempt }) => ({ sandboxId, index, attempt }));

const launchOf = (effect: Of<'ensureForwarded'>, { id, spec, forkedFrom }: RequestState): LaunchSandboxes => ({
  type: 'LaunchSandboxes',
  requestId: id,
  spec,
  forkedFrom,
  items: itemsOf(effect),
  heldUntil: effect.heldUntil,
  follow: effect.follow,
});

const releaseOf = (effect: Of<'ensureReleased'>, { id }: RequestState): ReleaseSandboxes => ({
  type: 'ReleaseSandboxes',
  requestId: id,
  decision: effect.decision,
  items: itemsOf(effect),
});

const reportOf = ({ parent, chunk, phase, counts, error }: Of<'ensureReported'>, { project }: RequestState): z.infer<typeof ReportChunk> => ({
  type: 'ReportChunk',
  project,
  requestId: parent,
  chunk,
  phase,
  counts,
  error,
});

const placeOf = ({ chunk, first, count }: Of<'ensureChunkPlaced'>, parent: RequestState, shardCount: number): z.infer<typeof PlaceSandboxes> => ({
  type: 'PlaceSandboxes',
  project: parent.project,
  key: parent.key,
  requestId: chunkIdFor(parent.id, chunk, shardCount),
  bodyHash: parent.bodyHash,
  count,
  spec: parent.spec,
  forkedFrom: parent.forkedFrom,
  deadlineAt: parent.deadlineAt,
  chunkOf: { requestId: parent.id, chunk, first, mode: parent.group?.mode ?? 'asManyAsFit' },
});

const decideOf = ({ chunk, decision, error }: Of<'ensureChunkDecided'>, parent: RequestState, shardCount: number): z.infer<typeof DecideChunk> => ({
  type: 'DecideChunk',
  project: parent.project,
  requestId: chunkIdFor(parent.id, chunk, shardCount),
  decision,
  error,
});
