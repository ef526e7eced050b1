/** Rights in a cluster: credentials made while it runs are let in by auth callout, at every server, and let out when they are revoked. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '#infra/cluster/cluster.ts';
import { createLog } from '#runtime/log/log.ts';
import { connect, type DsecClient } from '#sdk/mod.ts';

const SETTLE_MS = 20_000;
let dir: string;
let cluster: Cluster;
let owner: DsecClient;
const open: DsecClient[] = [];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-ic-'));
  cluster = await startCluster({ dir, edges: 0, namespaces: false, log: createLog('cluster', 'error') });
  owner = await connect({ contextFile: cluster.contextFile, timeoutMs: SETTLE_MS });
});
afterAll(async () => {
  for (const client of [...open, owner]) await client?.close();
  await cluster?.close();
  rmSync(dir, { recursive: true, force: true });
});

test('a key and a secret made while it runs are let in, each for its own project; revoked, they are out', async () => {
  await owner.admin.createPrincipal('bot', 'agent');
  await owner.admin.grant('default/bot', { role: 'viewer' });
  const issued = await Promise.all([owner.admin.issueCredential('bot'), owner.admin.issueCredential('bot', { type: 'secret' })]);
  for (const { context } of issued) {
    const bot = await connect({ ...context, timeoutMs: SETTLE_MS });
    open.push(bot);
    expect((await bot.admin.whoami()).principal).toBe('default/bot');
    await expect(bot.admin.createProject('not-mine')).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(connect({ ...context, project: 'elsewhere', timeoutMs: SETTLE_MS })).rejects.toMatchObject({ code: 'FORBIDDEN' });
  }
  for (const { id } of issued) await owner.admin.revokeCredential(id);
  for (const bot of open)
    await expect
      .poll(
        () =>
          bot.admin.whoami().then(
            () => 'works',
            (thrown: { code: string }) => thrown.code,
          ),
        { timeout: SETTLE_MS },
      )
      .not.toBe('works');
  for (const { context } of issued) await expect(connect({ ...context, timeoutMs: 3_000 })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
});
