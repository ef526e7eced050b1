/** Liveness, readiness and metrics of a real process on a real bus that is killed and comes back. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import { COMMANDS_STREAM, eventsStream } from '#bus/subjects.ts';
import { startControlPlane, type ControlPlane } from '#test/helpers/control-plane.ts';
import { readOps } from '#test/helpers/ops.ts';

const OUTAGE_MS = 30_000;
let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane({ fleet: [1], control: [['apiserver', 'iam', 'placement', 'watcher']] });
}, 90_000);
afterAll(() => plane?.close());

describe('a process that serves', () => {
  test('answers where its file says, and nothing else', async () => {
    const control = readOps(plane.controlDir(0));
    expect(await control.json('/healthz')).toMatchObject({ status: 200, body: { status: 'alive', roles: ['apiserver', 'iam', 'placement', 'watcher'] } });
    expect(await control.json('/readyz')).toMatchObject({ status: 200, body: { status: 'ready', reasons: [] } });
    expect((await control.json('/constructor')).status).toBe(404);
    expect((await fetch(`http://${control.address}/metrics`, { method: 'POST' })).status).toBe(405);
  });

  test('counts what a create and a refusal make of it', async () => {
    const control = readOps(plane.controlDir(0));
    const edge = readOps(plane.fleetDir(0));
    const before = await control.metrics();
    const dsec = await plane.connect();
    const box = await dsec.runContainer({ image: 'small' });
    await expect(dsec.runContainer({ image: 'nowhere' })).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND' });
    const after = await control.metrics();
    const grown = (name: string, labels: Readonly<Record<string, string>>) => after.value(name, labels) - before.value(name, labels);
    expect(grown('dsec_api_requests_total', { verb: 'create', code: 'OK' })).toBe(1);
    expect(grown('dsec_api_requests_total', { verb: 'create', code: 'IMAGE_NOT_FOUND' })).toBe(1);
    expect(grown('dsec_creates_accepted_total', {})).toBe(1);
    expect(grown('dsec_placement_attempts_total', { attempt: 'first' })).toBe(1);
    expect(grown('dsec_commits_total', { role: 'placement', kind: 'request', outcome: 'applied' })).toBeGreaterThanOrEqual(1);
    expect(grown('dsec_commit_seconds_count', { role: 'placement', kind: 'request' })).toBeGreaterThanOrEqual(1);
    expect(after.value('dsec_commands_pending', { role: 'placement', consumer: 'lane-0' })).toBe(0);
    const node = await edge.metrics();
    expect(node.value('dsec_edge_sandboxes', { status: 'running' })).toBe(1);
    expect(node.value('dsec_edge_used', { resource: 'sandboxes' })).toBe(1);
    expect(node.value('dsec_sandboxes_started_total', {})).toBe(1);
    expect(node.value('dsec_effects_total', { effect: 'ensureLaunched', code: 'OK' })).toBe(1);
    expect(after.text + node.text).not.toContain(box.id);
    await box.stop();
    await dsec.close();
  });

  test('lives while the bus is dead, says that it is degraded and why, and is ready again afterwards', async () => {
    const control = readOps(plane.controlDir(0));
    const edge = readOps(plane.fleetDir(0));
    await plane.killBus();
    for (const process of [control, edge]) {
      await expect.poll(async () => (await process.json('/readyz')).status, { timeout: OUTAGE_MS }).toBe(503);
      expect(await process.json('/healthz')).toMatchObject({ status: 200 });
      const { body } = await process.json('/readyz');
      expect(body).toMatchObject({ status: 'degraded', reasons: expect.arrayContaining([expect.objectContaining({ check: 'bus' })]) });
      expect((await process.metrics()).value('dsec_ready', {})).toBe(0);
    }
    await plane.restartBus();
    for (const process of [control, edge]) await expect.poll(() => process.json('/readyz'), { timeout: OUTAGE_MS }).toMatchObject({ status: 200 });
  }, 90_000);

  test('takes its address away when it ends', async () => {
    const file = join(plane.fleetDir(0), 'edge.ops');
    expect(readFileSync(file, 'utf8')).toMatch(/^127\.0\.0\.1:\d+\n$/);
    await plane.fleet[0]?.stop();
    expect(() => readFileSync(file, 'utf8')).toThrow(/ENOENT/);
  });

  test('says of each role what it cannot do: a watcher that hears no node, lanes and a log that are gone', async () => {
    const control = readOps(plane.controlDir(0));
    const reasons = async () =>
      ((await control.json('/readyz')).body as { reasons: { role: string; check: string }[] }).reasons.map((one) => `${one.role} ${one.check}`);
    // The node has just ended, and is not declared lost yet.
    await expect.poll(reasons, { timeout: OUTAGE_MS, interval: 200 }).toEqual(['watcher beats']);
    const nc = await connect({ servers: [...plane.servers] });
    const jsm = await jetstreamManager(nc);
    await jsm.streams.delete(COMMANDS_STREAM);
    await expect.poll(reasons, { timeout: OUTAGE_MS }).toContain('placement queue');
    expect(await reasons()).not.toContain('iam log');
    await jsm.streams.delete(eventsStream('0' as Shard));
    await expect.poll(reasons, { timeout: OUTAGE_MS }).toContain('iam log');
    expect((await control.json('/healthz')).status).toBe(200);
    await nc.close();
  }, 90_000);
});
