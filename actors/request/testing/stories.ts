import type { RequestCommand } from '#bus/request/schema.ts';
import { shelf, type Story } from '../../kernel/testing/story.ts';
import { requestDefinition } from '../request.definition.ts';
import {
  address,
  DEADLINE_MS,
  E1,
  E2,
  edgeNamed,
  impossible,
  missing,
  chunkOf,
  decide,
  lease,
  overQuota,
  place,
  placeGroup,
  refuse,
  report,
  reportChunk,
  reportOverQuota,
  T0,
} from './samples.ts';

const story = (name: string, ...steps: [RequestCommand, number][]): Story<RequestCommand> => ({
  name,
  steps: steps.map(([command, delayMs]) => ({ command, at: T0 + delayMs })),
});

export const requestShelf = shelf('request', requestDefinition, address, [
  story(
    'placed-and-repeated',
    [place([E1, E1, E2]), 0],
    [place([E2, E2, E2]), 5_000],
    [place([E1, E1, E1], { bodyHash: 'other' }), 6_000],
    [place([E1, E1, E2]), 25 * 3_600_000],
  ),
  story(
    'refused-and-moved',
    [place([E1, E1, null]), 0],
    [refuse(0, 0, E2), 10],
    [refuse(0, 0, E2), 11],
    [refuse(0, 1, edgeNamed(3), missing), 20],
    [refuse(1, 0, null), 30],
  ),
  story('given-up', [place([E1, E2]), 0], [refuse(0, 0, E2, impossible), 10], [refuse(1, 0, E1), DEADLINE_MS]),
  story('over-quota', [place([E1, E2, E1], { quota: { lease, count: 2, error: overQuota } }), 0], [reportOverQuota, 10], [reportOverQuota, 11]),
  story(
    'chunk-held-and-started',
    [place([E1, E2], { chunkOf: chunkOf('allOrNothing') }), 0],
    [report({ held: [{ index: 0, attempt: 0 }] }), 10],
    [refuse(1, 0, E1), 11],
    [report({ held: [{ index: 1, attempt: 1 }] }), 20],
    [decide('start'), 30],
    [report({ running: [{ index: 0, attempt: 0 }], failed: [{ index: 1, attempt: 1, error: impossible }] }), 40],
  ),
  story(
    'chunk-given-back',
    [place([E1, null], { chunkOf: chunkOf('allOrNothing') }), 0],
    [report({ held: [{ index: 0, attempt: 0 }] }), 10],
    [decide('abandon'), 20],
  ),
  story('group', [placeGroup('asManyAsFit', 300), 0], [reportChunk(0, 'placed'), 10], [reportChunk(1, 'settled'), 20], [reportChunk(0, 'settled'), 30]),
  story(
    'group-whole',
    [placeGroup('allOrNothing', 300), 0],
    [reportChunk(0, 'held'), 10],
    [reportChunk(1, 'held'), 20],
    [reportChunk(0, 'settled'), 30],
    [reportChunk(1, 'settled'), 40],
  ),
  story('group-given-up', [placeGroup('allOrNothing', 300), 0], [reportChunk(0, 'held'), 10], [reportChunk(1, 'lacking'), 20], [reportChunk(0, 'settled'), 30]),
  story('too-late', [place([E1, E2]), DEADLINE_MS + 1]),
]);
