/**
 * `burst`: the paper's largest job in one request. Time until it is accepted durably, until every sandbox is placed, and how evenly they
 * lie, with two placements; against the rule best of three without overlay, at the same pace. Sandboxes are records only.
 *
 *     npm run bench -- burst [count=32000] [edges=16]
 */
import { requestIdFor, type ClientKey, type ProjectName } from '#bus/ids.ts';
import { parseSandboxId } from '#bus/ids.ts';
import { outFilter } from '#bus/subjects.ts';
import { connect as connectNats } from '@nats-io/transport-node';
import { startControlPlane } from '#test/helpers/control-plane.ts';
import { bestOfThreeMaxOverMean } from './best-of-three.ts';
import { runBench } from './harness.ts';

const COUNT = Number(process.argv[2] ?? 32_000);
const EDGES = Number(process.argv[3] ?? 16);
const OPTIONS = { image: 'small', memoryLimitMb: 16, pidsLimit: 16 };

await runBench('burst', { acceptSeconds: '≤ 3', maxOverMean: '≤ 1.05' }, async (say) => {
  const control = [['apiserver', 'iam', 'watcher'], ['placement'], ['placement']] as const;
  const plane = await startControlPlane({ control, fleet: [EDGES], shards: 2, lanes: 2, overrides: { maxSandboxes: 60_000 } });
  const nc = await connectNats({ servers: [...plane.servers] });
  try {
    const dsec = await plane.connect();
    await dsec.runContainers(OPTIONS, { count: EDGES * 4 }); // every process has done it once
    const project = plane.project as ProjectName;
    const key = 'burst' as ClientKey;
    const parent = requestIdFor(project, key, 2);
    let acceptedAt = 0;
    const placed = new Map<string, number>();
    let placedAt = 0;
    nc.subscribe(outFilter({ project, kind: 'request' }), {
      callback: (_, message) => {
        const { events } = message.json<{ events: { type: string; assignments?: { sandboxId: string; index: number }[] }[] }>();
        if (message.subject.endsWith(parent)) acceptedAt ||= performance.now();
        for (const { assignments = [] } of events) for (const { sandboxId } of assignments) placed.set(sandboxId, performance.now());
        if (placed.size >= COUNT) placedAt ||= performance.now();
      },
    });
    await nc.flush();
    const startedAt = performance.now();
    const group = (await dsec.runContainers({ ...OPTIONS, key }, { count: COUNT, timeoutMs: 600_000 })).orThrow();
    const allAt = performance.now();
    const perEdge = new Map<string, number>();
    for (const { id } of group.sandboxes) perEdge.set(parseSandboxId(id).edge, (perEdge.get(parseSandboxId(id).edge) ?? 0) + 1);
    const maxOverMean = Math.max(...perEdge.values()) / (COUNT / EDGES);
    const placedMs = (placedAt || allAt) - startedAt;
    const rule = [1, 2, 3, 4, 5].map((seed) => bestOfThreeMaxOverMean(EDGES, COUNT, placedMs, seed)).sort((a, b) => a - b);
    say(
      `${COUNT} on ${perEdge.size} Edges: ${[...perEdge.values()].sort((a, b) => b - a).join(' ')}; all run after ${((allAt - startedAt) / 1_000).toFixed(1)} s`,
    );
    await dsec.close();
    return {
      acceptSeconds: (acceptedAt - startedAt) / 1_000,
      placedSeconds: placedMs / 1_000,
      maxOverMean,
      maxOverMeanNoOverlay: rule[2] ?? Number.NaN,
      allRunSeconds: (allAt - startedAt) / 1_000,
    };
  } finally {
    await nc.close();
    await plane.close();
  }
});
