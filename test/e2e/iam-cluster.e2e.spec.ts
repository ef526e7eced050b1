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
  cluster = await startCluster({ dir, edges: 1, namespaces: false, overrides: { backend: 'null' }, log: createLog('cluster', 'error') });
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

test('a credential that expires is out on the connection that it had opened, and opens no other', async () => {
  const { context } = await owner.admin.issueCredential('bot', { lifeSeconds: 8 });
  const brief = await connect({ ...context, timeoutMs: SETTLE_MS });
  open.push(brief);
  expect((await brief.admin.whoami()).principal).toBe('default/bot');
  const code = () =>
    brief.admin.whoami().then(
      () => 'works',
      (thrown: { code: string }) => thrown.code,
    );
  await expect.poll(code, { timeout: 3 * SETTLE_MS }).not.toBe('works');
  await expect(connect({ ...context, timeoutMs: SETTLE_MS })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect((await owner.admin.whoami()).principal).toBe('default/owner'); // and nobody else
});

test('a right that is taken away is gone for operations too, on a connection that was opened with it', async () => {
  // Its own node says no, whatever the connection may publish. What it would answer otherwise is another error: the sandbox does not exist.
  const stranger = `sb-0-${'0'.repeat(20)}-edge-1`;
  const code = (client: DsecClient) =>
    client
      .sandbox(stranger)
      .exec(['true'])
      .then(
        () => 'works',
        (thrown: { code: string }) => thrown.code,
      );
  await owner.admin.grant('default/bot', { role: 'runner' });
  const runner = await connect({ ...(await owner.admin.issueCredential('bot')).context, timeoutMs: SETTLE_MS });
  open.push(runner);
  expect(await code(runner)).toBe('SANDBOX_NOT_FOUND');
  await owner.admin.revoke('default/bot');
  await owner.admin.grant('default/bot', { role: 'viewer' });
  await expect.poll(() => code(runner), { timeout: SETTLE_MS }).toBe('FORBIDDEN');
  await owner.admin.grant('default/bot', { role: 'runner' });
  await expect.poll(() => code(runner), { timeout: SETTLE_MS }).toBe('SANDBOX_NOT_FOUND');
});
