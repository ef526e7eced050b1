/** A minute of mixed load on a cluster of three servers and three Edges while a random process dies every few seconds. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runChaos } from '#test/helpers/chaos/run.ts';
import { startTestCluster, type TestCluster } from '#test/helpers/cluster.ts';

const SECONDS = 60;

let host: TestCluster;
beforeAll(async () => {
  host = await startTestCluster({ edges: 3 });
});
afterAll(async () => {
  await host?.close();
});

test('nothing acknowledged is lost or doubled, nothing is left over', { timeout: 400_000 }, async () => {
  const report = await runChaos({ host, seconds: SECONDS, workers: 4, everyMs: [5_000, 10_000] });
  expect(report.kills.length).toBeGreaterThanOrEqual(4);
  expect(report.acked).toBeGreaterThan(20);
  expect(report.quotaChanges).toBeGreaterThan(3);
  expect(report.leases).toBeGreaterThan(10);
  const { lost, doubled, orphaned, quotaDrift, quotaFindings } = report;
  expect({ lost, doubled, orphaned, quotaDrift, quotaFindings }).toEqual({ lost: [], doubled: [], orphaned: [], quotaDrift: 0, quotaFindings: [] });
});
