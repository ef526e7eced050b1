import type { ProjectName } from '#bus/ids.ts';
import type { ProjectCommand } from '#bus/project/schema.ts';
import { shelf, type Story } from '../../kernel/testing/story.ts';
import { projectDefinition } from '../project.definition.ts';
import {
  address,
  below,
  close,
  confirm,
  delegate,
  grant,
  issue,
  LEASE_MS,
  open,
  principal,
  remove,
  revoke,
  revokeCredential,
  root,
  sandboxes,
  setQuota,
  settle,
  T0,
  usage,
} from './samples.ts';

const story = (name: string, ...steps: [ProjectCommand, number][]): Story<ProjectCommand> => ({
  name,
  steps: steps.map(([command, delayMs]) => ({ command, at: T0 + delayMs })),
});

export const projectShelf = shelf('project', projectDefinition, address, [
  story(
    'people-and-rights',
    [root(sandboxes(100)), 0],
    [principal('bot'), 10],
    [issue('bot', 2), 20],
    [issue('bot', 3, T0 + 5_000), 21],
    [grant('acme/bot', 'runner'), 30],
    [grant('other/ann', null, ['audit.read']), 31],
    [grant('acme/bot', 'owner', [], ['sandbox.read']), 32],
    [revokeCredential(2), 40],
    [issue('bot', 4), 6_000],
    [revoke('other/ann'), 6_010],
    [remove('bot'), 6_020],
  ),
  story('delegated', [below(sandboxes(10)), 0], [delegate('team', sandboxes(5)), 1], [delegate('team', sandboxes(11)), 2], [setQuota(sandboxes(3)), 3]),
  story(
    'lent-and-settled',
    [root(sandboxes(10)), 0],
    [open(1, 6), 1],
    [open(2, 6), 2],
    [open(2, 4), 3],
    [open(4, 1, usage(0, 0), 'team' as ProjectName), 4],
    [settle(1), 5],
    [close(1), 6],
    [confirm(1, 15, usage(20, 6)), 7],
    [settle(1, { '0': 15, '1': 3 }), 8],
    [open(3, 1, usage(14, 0)), 9],
    [close(2), LEASE_MS],
    [settle(2, { '0': 30 }), LEASE_MS + 1],
    [confirm(2, 31, usage(31, 10)), LEASE_MS + 2],
  ),
]);
