/** Nodes of a cluster under test, as an operator handles them. */
import { vi } from 'vitest';
import type { EdgeName } from '#bus/ids.ts';
import type { Cluster } from '#infra/cluster/cluster.ts';
import { loadConfig } from '#runtime/config.ts';
import { cordonNode, uncordonNode } from '#runtime/nodes/nodes.ts';
import { asOperator, type Operator } from '#runtime/nodes/operator.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';

const PATIENCE = { timeout: 40_000, interval: 200 };

export const operate = <T>(cluster: Cluster, work: (operator: Operator) => Promise<T>): Promise<T> =>
  asOperator(loadConfig({ file: cluster.operatorConfig }), work);

export const edgeOf = ({ id }: { readonly id: string }): EdgeName => id.split('-').slice(3).join('-') as EdgeName;

/**
 * Sandboxes on one node, whatever placement thinks of it: a node that has failed lately gets nothing while there is another, so
 * all others are cordoned meanwhile.
 */
export const createOn = async (cluster: Cluster, dsec: DsecClient, edge: EdgeName, count: number): Promise<readonly Sandbox[]> => {
  const others = cluster.edges.filter((one) => one !== edge);
  const each = (work: typeof uncordonNode): Promise<unknown> => operate(cluster, (o) => Promise.all(others.map((other) => work(o, other))));
  await each((o, other) => cordonNode(o, other, 'for a test'));
  try {
    return await vi.waitFor(async () => {
      const { sandboxes } = await dsec.runContainers({ image: 'small', memoryLimitMb: 16 }, { count });
      if (sandboxes.length === count && sandboxes.every((one) => edgeOf(one) === edge)) return sandboxes;
      await Promise.all(sandboxes.map((one) => one.stop()));
      throw new Error(`not all of ${count} on ${edge}`);
    }, PATIENCE);
  } finally {
    await each(uncordonNode);
  }
};
