/** A whole cluster: three nats-servers, two of each role, Edges on hosts of their own; used as a client uses it. */
import { expect, test } from 'vitest';
import type { DsecClient } from '#sdk/mod.ts';
import { givenCluster } from '#test/helpers/given.ts';

let dsec: DsecClient;
givenCluster({ edges: 2 }, (given) => {
  ({ dsec } = given);
});

test('a group is spread over the Edges, and every sandbox takes commands', async () => {
  const group = await dsec.runContainers({ image: 'small' }, { count: 8 });
  expect(group.failures).toEqual([]);
  const edges = new Set(group.sandboxes.map(({ id }) => id.split('-').slice(3).join('-')));
  expect([...edges].sort()).toEqual(['edge-1', 'edge-2']);
  const answers = await Promise.all(group.sandboxes.map((sandbox) => sandbox.exec(['sh', '-c', 'echo $((6 * 7))'])));
  expect(answers.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 8 }, () => '42\n'));
  await Promise.all(group.sandboxes.map((sandbox) => sandbox.stop()));
});
