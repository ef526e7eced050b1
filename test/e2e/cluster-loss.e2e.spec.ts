/** An Edge that is gone: its loss is declared once, callers learn it at once, what it had not admitted goes elsewhere, and it comes back fenced. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { EdgeName } from '#bus/ids.ts';
import { edgeAddress } from '#bus/subjects.ts';
import { connectJetStream } from '#adapters/jetstream/mod.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { asOperator } from '#test/helpers/chaos/operator.ts';
import type { TestCluster } from '#test/helpers/cluster.ts';
import { givenCluster } from '#test/helpers/given.ts';
import { createOn, edgeOf } from '#test/helpers/nodes.ts';
import { refusal } from '#test/helpers/refusal.ts';

const LEASE_MS = 3_000;
const PATIENCE = { timeout: 60_000, interval: 100 };
let host: TestCluster;
let dsec: DsecClient;

/** Both Edges have one of these. */
const oneOnEach = async (): Promise<Map<EdgeName, Sandbox>> => {
  const { sandboxes } = await dsec.runContainers({ image: 'small' }, { count: 8 });
  const found = new Map(sandboxes.map((sandbox) => [edgeOf(sandbox), sandbox]));
  expect([...found.keys()].sort()).toEqual(host.cluster.edges);
  return found;
};
const logOf = (member: string): string => readFileSync(join(host.dir, member, 'log'), 'utf8');
/** What the log says: how often the Edge was declared lost. */
const lossesOf = (edge: EdgeName): Promise<unknown[]> =>
  asOperator(host.cluster, async (nc) => {
    const commits = await connectJetStream(nc).eventLog.history(edgeAddress(edge), 0, 10_000);
    return commits.flatMap(({ commit }) => commit.events).filter(({ type }) => type === 'EdgeLost');
  });
const isFrozen = (edge: EdgeName): boolean => logOf(edge).includes('lease.fenced');

givenCluster({ edges: 2, overrides: { leaseMs: LEASE_MS } }, (given) => {
  ({ host, dsec } = given);
});

describe('an Edge whose cable is pulled', () => {
  test('freezes, is declared lost once, and comes back as a new generation that ends what was lost', async () => {
    const boxes = await oneOnEach();
    const cut = 'edge-1' as EdgeName;
    const lost = boxes.get(cut) as Sandbox;
    const kept = boxes.get('edge-2' as EdgeName) as Sandbox;
    const running = lost.exec(['sleep', '600']);
    const ended = refusal(running);
    await lost.start(['sh', '-c', 'while true; do date +%s%N > /w/tick; sleep 0.05; done']);
    const watched: string[] = [];
    const leave = new AbortController();
    const watching = (async () => {
      for await (const change of dsec.watch({ signal: leave.signal })) if (change.kind === 'lost') watched.push(change.id);
    })().catch(() => {});

    await host.cluster.setLink(cut, false);
    await vi.waitFor(() => expect(isFrozen(cut)).toBe(true), PATIENCE);
    const error = await ended;
    expect(error).toMatchObject({ code: 'SANDBOX_LOST', fault: 'infra', details: { edge: cut, generation: 1 } });
    expect((await dsec.get(lost.id)).state).toMatchObject({ status: 'failed', failure: { code: 'SANDBOX_LOST' } });
    expect(await refusal(lost.exec(['true']))).toMatchObject({ code: 'SANDBOX_LOST' });
    expect(await refusal(lost.extend({ ttlTotal: 600 }))).toMatchObject({ code: 'SANDBOX_LOST' });
    expect(await lost.stop()).toMatchObject({ status: 'failed', failure: { code: 'SANDBOX_LOST' } });
    await vi.waitFor(() => expect(watched).toContain(lost.id), PATIENCE);
    const failed: string[] = [];
    for await (const { id } of dsec.list({ status: 'failed' })) failed.push(id);
    expect(failed).toContain(lost.id);
    for await (const { id } of dsec.list({ status: 'running' })) expect(edgeOf({ id })).toBe('edge-2');
    leave.abort();
    await watching;

    // What lives on the other node notices nothing, and new work goes there.
    expect((await kept.exec(['true'])).ok).toBe(true);
    await using fresh = await dsec.runContainer({ image: 'small' });
    expect(edgeOf(fresh)).toBe('edge-2');

    // Frozen means frozen: the loop in the lost sandbox has not ticked since.
    const tick = join(host.dir, cut, 'data/sandboxes', lost.id, 'upper/w/tick');
    const before = readFileSync(tick, 'utf8');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(readFileSync(tick, 'utf8')).toBe(before);

    await host.cluster.setLink(cut, true);
    await vi.waitFor(async () => expect((await dsec.get(lost.id)).state).toMatchObject({ status: 'failed' }), PATIENCE);
    await vi.waitFor(async () => {
      const types = [];
      for await (const { events } of lost.events()) types.push(...events.map(({ type }) => type));
      expect(types.at(-1)).toBe('SandboxFailed');
    }, PATIENCE);
    expect(logOf(cut)).toContain('edge.lost');
    expect(await lossesOf(cut)).toHaveLength(1);
    // It takes new sandboxes.
    const again = await createOn(host.cluster, dsec, cut, 2);
    await Promise.all(again.map((one) => one.stop()));
    await Promise.all([...boxes.values()].map((box) => box.stop()));
  });
});
