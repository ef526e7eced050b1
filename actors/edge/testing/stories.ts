import type { EdgeCommand } from '#bus/edge/schema.ts';
import { shelf, type Story } from '../../kernel/testing/story.ts';
import { edgeDefinition } from '../edge.definition.ts';
import { address, cordon, fenceQueue, LEASE_MS, lost, register, renew, retire, T0, uncordon } from './samples.ts';

const story = (name: string, ...steps: [EdgeCommand, number][]): Story<EdgeCommand> => ({
  name,
  steps: steps.map(([command, delayMs]) => ({ command, at: T0 + delayMs })),
});

export const edgeShelf = shelf('edge', edgeDefinition, address, [
  story(
    'renewed-and-retired',
    [register('a'), 0],
    [register('a'), 1],
    [renew(1, 'a'), 10_000],
    [renew(1, 'a'), 20_000],
    [lost(1), 30_000],
    [retire(1), 40_000],
  ),
  story(
    'lost-and-back',
    [register('a'), 0],
    [lost(1), LEASE_MS + 1],
    [lost(1), LEASE_MS + 2],
    [renew(1, 'a'), LEASE_MS + 3],
    [register('b'), LEASE_MS + 4],
    [renew(2, 'b'), LEASE_MS + 5],
  ),
  story(
    'back-and-fenced',
    [register('a'), 0],
    [lost(1), LEASE_MS + 1],
    [register('b'), LEASE_MS + 2],
    [register('c'), LEASE_MS + 3],
    [fenceQueue(3, 'c'), LEASE_MS + 4],
    [fenceQueue(3, 'c'), LEASE_MS + 5],
  ),
  story('replaced', [register('a'), 0], [register('b'), 5_000], [renew(1, 'a'), 6_000], [renew(2, 'b'), 7_000], [lost(1), 60_000]),
  story('cordoned', [register('a'), 0], [cordon, 1_000], [cordon, 2_000], [register('b'), 3_000], [uncordon, 4_000], [uncordon, 5_000]),
]);
