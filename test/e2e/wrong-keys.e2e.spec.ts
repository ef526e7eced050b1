/** A role whose key the bus does not know ends by itself, says why, and says it by its exit code: on a cluster, where a server tells of others. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERRORS } from '#bus/errors.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { type ClusterBus, startClusterBus } from '#infra/cluster/bus.ts';
import { projectRoot } from '#runtime/project-root.ts';

let dir: string;
let bus: ClusterBus;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-wk-'));
  bus = await startClusterBus({
    dir: join(dir, 'bus'),
    host: '127.0.0.1',
    servers: 3,
    syncIntervalMs: 1_000,
    edges: ['edge-1' as EdgeName],
    clients: [{ project: 'default' as ProjectName, name: 'owner' }],
    projectRoot: projectRoot(),
    env: process.env,
    onEvent: () => {},
  });
}, 120_000);
afterAll(async () => {
  await bus?.stop();
  rmSync(dir, { recursive: true, force: true });
});

test.concurrent.each(['placement', 'edge'])('%s', { timeout: 180_000 }, async (role) => {
  const home = join(dir, role);
  const credentialsDir = join(home, 'credentials');
  mkdirSync(credentialsDir, { recursive: true });
  const seed = new TextDecoder().decode(nkeys.createUser().getSeed());
  writeFileSync(join(credentialsDir, `role-${role}.nk`), seed, { mode: 0o600 });
  const config = { dataDir: join(home, 'data'), runDir: join(home, 'run'), credentialsDir, servers: bus.urls.join(','), edgeName: 'edge-1', backend: 'null' };
  writeFileSync(join(home, 'config.json'), JSON.stringify(config));
  const program = join(projectRoot(), 'build/dsec.mjs');
  const child = spawn(process.execPath, [program, role, '--config', join(home, 'config.json')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data: Buffer) => {
    said += data.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  expect(said).toMatch(/"role\.failed".*"UNAUTHENTICATED"/);
  expect(code).toBe(ERRORS.UNAUTHENTICATED.exit);
});
