/** Projects, rights and quotas on a started platform: who may do what, how much, and who did it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectNats, nkeyAuthenticator } from '@nats-io/transport-node';
import { headers } from '@nats-io/nats-core';
import { afterAll, describe, expect, test } from 'vitest';
import type { AuditRecord } from '#bus/api/iam.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import type { IssuedCredential } from '#sdk/admin.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

const SMALL = { image: 'small', memoryLimitMb: 8 } as const;
const SETTLE_MS = 15_000;

let host: TestPlatform;
let owner: DsecClient;
const open: DsecClient[] = [];

givenPlatform({ overrides: { memoryMiB: 8_192 } }, (given) => {
  ({ host, dsec: owner } = given);
});
afterAll(async () => {
  for (const client of open) await client.close();
});

/** The bus of one machine is told of new credentials a moment later. */
const connectAs = async ({ context }: Pick<IssuedCredential, 'context'>, project = context.project): Promise<DsecClient> => {
  for (const until = performance.now() + SETTLE_MS; ; await delay(50)) {
    try {
      const client = await connect({ ...context, project });
      open.push(client);
      return client;
    } catch (thrown) {
      if (performance.now() > until || (thrown as { code?: string }).code !== 'UNAUTHENTICATED') throw thrown;
    }
  }
};
const inProject = async (project: string): Promise<DsecClient> => {
  for (const until = performance.now() + SETTLE_MS; ; await delay(50)) {
    try {
      const client = await connect({ contextFile: host.platform.contextFile, project });
      open.push(client);
      return client;
    } catch (thrown) {
      if (performance.now() > until) throw thrown;
    }
  }
};
const member = async (team: DsecClient, name: string, role: 'owner' | 'operator' | 'runner' | 'viewer'): Promise<IssuedCredential> => {
  await team.admin.createPrincipal(name, 'agent');
  await team.admin.grant(`${team.project}/${name}`, { role });
  return team.admin.issueCredential(name);
};
const outcomes = async (creates: readonly Promise<Sandbox>[]) => {
  const settled = await Promise.allSettled(creates);
  const made = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const codes = settled.flatMap((one) => (one.status === 'rejected' ? [(one.reason as { code: string }).code] : []));
  return { made, codes };
};

/** The program itself, with the owner's credentials. */
const dsec = (...words: string[]): Promise<{ readonly out: string; readonly err: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, DSEC_CONTEXT: host.platform.contextFile };
    execFile(process.execPath, [join(projectRoot(), 'build/dsec.mjs'), ...words], { env }, (_, out, err) => resolve({ out, err }));
  });

describe('quotas', () => {
  test('50 creates at a quota of 40: 40 succeed, 10 are over it; after the deletes all 40 are free again', async () => {
    await owner.admin.createProject('forty', { sandboxes: 40 });
    const forty = await inProject('forty');
    for (let round = 0; round < 2; round += 1) {
      const { made, codes } = await outcomes(Array.from({ length: 50 }, () => forty.runContainer(SMALL)));
      expect(made).toHaveLength(40);
      expect(codes).toEqual(Array.from({ length: 10 }, () => 'QUOTA_EXCEEDED'));
      await Promise.all(made.map((sandbox) => sandbox.delete()));
      await expect.poll(async () => (await forty.admin.getProject()).used, { timeout: SETTLE_MS }).toEqual({});
    }
    expect(await (await owner.runContainer(SMALL)).delete()).toBeDefined(); // nobody else is bounded by it
  });

  test('a group above the quota gets what there is, and says of the rest why', async () => {
    await owner.admin.createProject('group', { sandboxes: 5, memoryMiB: 64 });
    const group = await (await inProject('group')).runContainers(SMALL, { count: 9 });
    const items = [...group.items];
    expect(items.filter(({ sandbox }) => sandbox)).toHaveLength(5);
    expect(items.filter(({ error }) => error?.code === 'QUOTA_EXCEEDED')).toHaveLength(4);
    await Promise.all(items.map(({ sandbox }) => sandbox?.delete()));
  });

  test('a project is bounded by every one above it, also after that one shrinks', async () => {
    await owner.admin.createProject('outer', { sandboxes: 6 });
    const outer = await inProject('outer');
    await expect(outer.admin.createProject('too-much', { sandboxes: 7 })).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    await outer.admin.createProject('inner', { sandboxes: 5 });
    const inner = await inProject('inner');
    const first = await outcomes(Array.from({ length: 3 }, () => inner.runContainer(SMALL)));
    expect(first.made).toHaveLength(3);
    await owner.admin.setQuota('outer', { sandboxes: 4 });
    const second = await outcomes(Array.from({ length: 3 }, () => inner.runContainer(SMALL)));
    expect([second.made.length, second.codes]).toEqual([1, ['QUOTA_EXCEEDED', 'QUOTA_EXCEEDED']]);
    expect((await inner.admin.getProject()).effective).toMatchObject({ sandboxes: 0 });
    await expect(outer.runContainer(SMALL)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED', details: { project: 'outer' } });
    await Promise.all([...first.made, ...second.made].map((sandbox) => sandbox.delete()));
  });

  test('a limit on disk wants a limit of each sandbox', async () => {
    await owner.admin.createProject('disks', { diskMiB: 64 });
    const disks = await inProject('disks');
    await expect(disks.runContainer(SMALL)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED', message: expect.stringContaining('diskMiB') });
    await (await disks.runContainer({ ...SMALL, diskLimitMb: 32 })).delete();
  });
});

describe('rights', () => {
  test('a viewer looks, a runner runs, an operator divides, an owner grants; each is told what it lacks', async () => {
    await owner.admin.createProject('team');
    const team = await inProject('team');
    const [viewer, runner, operator] = await Promise.all(
      (['viewer', 'runner', 'operator'] as const).map(async (role) => connectAs(await member(team, `the-${role}`, role))),
    );
    if (!viewer || !runner || !operator) throw new Error('no members');
    const sandbox = await runner.runContainer(SMALL);
    expect((await sandbox.exec(['echo', 'hi'])).stdout).toBe('hi\n');
    expect((await viewer.get(sandbox.id)).id).toBe(sandbox.id);
    await expect(viewer.runContainer(SMALL)).rejects.toMatchObject({ code: 'FORBIDDEN', details: { needed: 'sandbox.create' } });
    await expect(viewer.sandbox(sandbox.id).stop()).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(viewer.sandbox(sandbox.id).exec(['true'])).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(runner.admin.createProject('of-a-runner')).rejects.toMatchObject({ code: 'FORBIDDEN', details: { needed: 'project.create' } });
    await operator.admin.createProject('of-an-operator');
    await expect(operator.admin.grant('team/the-viewer', { role: 'runner' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await sandbox.delete();
  });

  test('nobody grants, or lends its name to, more than it has', async () => {
    await owner.admin.createProject('limited');
    const limited = await inProject('limited');
    const clerk = await connectAs(await member(limited, 'clerk', 'viewer'));
    await limited.admin.grant('limited/clerk', { role: 'runner', actions: ['policy.grant', 'principal.manage'] });
    await limited.admin.createPrincipal('chief', 'user');
    await limited.admin.grant('limited/chief', { role: 'owner' });
    await expect(clerk.admin.grant('limited/clerk', { role: 'owner' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(clerk.admin.issueCredential('chief')).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(clerk.admin.revoke('limited/chief')).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await clerk.admin.createPrincipal('helper', 'agent');
    await clerk.admin.grant('limited/helper', { role: 'viewer' });
    expect((await (await connectAs(await clerk.admin.issueCredential('helper'))).admin.whoami()).actions).toEqual(['sandbox.read', 'project.read']);
  });

  test('wrong, expired and revoked credentials; a token of one project on the subjects of another', async () => {
    await owner.admin.createProject('mine');
    await owner.admin.createProject('theirs');
    const mine = await inProject('mine');
    const theirs = await inProject('theirs');
    const secret = await theirs.runContainer(SMALL);
    const credential = await member(mine, 'bot', 'owner');
    const bot = await connectAs(credential);
    await expect(connect({ ...credential.context, project: 'theirs', timeoutMs: 1_000 })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(bot.get(secret.id)).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });

    const seed = (credential.context.credentials as { nkeySeed: string }).nkeySeed;
    const raw = await connectNats({
      servers: [...credential.context.servers],
      authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)),
      inboxPrefix: credential.context.inboxPrefix as string,
      noAsyncTraces: true,
    });
    const violations: string[] = [];
    void (async () => {
      for await (const status of raw.status()) if (status.type === 'error') violations.push(status.error.message);
    })();
    const forged = headers();
    forged.append('Nats-Request-Info', JSON.stringify({ acc: 'CLIENTS_default', user: host.platform.bus.keys.clients[0]?.publicKey }));
    for (const subject of [
      'dsec.api.theirs.get',
      `dsec.op.theirs.node-1.${secret.id}.exec`,
      'dsec.cmd.create.0',
      'dsec.iam.drawQuota',
      '$JS.API.INFO',
      '_INBOX.theirs.x',
    ])
      raw.publish(subject, '{"v":1}', { reply: `${credential.context.inboxPrefix}.x` });
    for (const subject of ['dsec.out.*.theirs.*.*.*', '_INBOX.>', '_R_.>', 'dsec.api.>', 'dsec.ev.>', '$SYS.>']) raw.subscribe(subject, { callback: () => {} });
    await raw.flush();
    await expect.poll(() => violations.length, { timeout: SETTLE_MS }).toBeGreaterThanOrEqual(12);
    const ask = async (more: object) => JSON.parse((await raw.request('dsec.api.mine.whoami', '{"v":1}', { timeout: 5_000, ...more })).string());
    expect(await ask({})).toMatchObject({ ok: true, data: { principal: 'mine/bot' } });
    // The server puts its own word in the place of a forged one; a second spelling of it is refused.
    expect(await ask({ headers: forged })).toMatchObject({ ok: true, data: { principal: 'mine/bot' } });
    const spelt = headers();
    spelt.append('nats-request-info', '{"acc":"CLIENTS_default","user":"x"}');
    expect(await ask({ headers: spelt })).toMatchObject({ ok: false, error: { code: 'UNAUTHENTICATED' } });

    await mine.admin.revokeCredential(credential.id);
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
    await expect
      .poll(
        () =>
          connect({ ...credential.context, timeoutMs: 500 }).then(
            () => 'works',
            (thrown: { code: string }) => thrown.code,
          ),
        { timeout: SETTLE_MS },
      )
      .toBe('UNAUTHENTICATED');
    await raw.close();
    await mine.admin.createPrincipal('brief', 'agent');
    await mine.admin.grant('mine/brief', { role: 'viewer' });
    const brief = await connectAs(await mine.admin.issueCredential('brief', { lifeSeconds: 3 }));
    await expect
      .poll(
        () =>
          brief.admin.whoami().then(
            () => 'works',
            (thrown: { code: string }) => thrown.code,
          ),
        { timeout: SETTLE_MS },
      )
      .toBe('UNAUTHENTICATED');
    await secret.delete();
  });

  test('the log says who did what', async () => {
    await owner.admin.createProject('audited');
    const audited = await inProject('audited');
    const bot = await connectAs(await member(audited, 'bot', 'runner'));
    const sandbox = await bot.runContainer(SMALL);
    await sandbox.exec(['true']);
    await sandbox.stop();
    const all = async (range = {}) => {
      const records: AuditRecord[] = [];
      for await (const record of audited.admin.audit(range)) records.push(record);
      return records;
    };
    const records = await all();
    expect(records).toContainEqual(expect.objectContaining({ principal: 'default/owner', kind: 'project', actorId: 'audited', events: ['ActionsGranted'] }));
    // Every commit of a life, not only its last one, and in their order.
    const ofSandbox = records.filter(({ actorId }) => actorId === sandbox.id);
    expect(ofSandbox.map(({ version }) => version)).toEqual(ofSandbox.map((_, n) => n + 1));
    expect(ofSandbox.flatMap(({ events }) => events)).toEqual(
      expect.arrayContaining(['SandboxAdmitted', 'SandboxStarted', 'SandboxStopping', 'SandboxStopped']),
    );
    expect(ofSandbox[0]?.principal).toBe('audited/bot');
    expect(records.map(({ storedAt }) => storedAt)).toEqual(records.map(({ storedAt }) => storedAt).sort((a, b) => a - b));
    expect(records.filter(({ actorId }) => !['audited', sandbox.id].includes(actorId)).every(({ kind }) => kind === 'request')).toBe(true);
    // By principal, kind and time.
    const own = await all({ principal: 'audited/bot' });
    expect(own.length).toBeGreaterThan(0);
    expect(own).toEqual(records.filter(({ principal }) => principal === 'audited/bot'));
    expect(await all({ kind: 'sandbox' })).toEqual(ofSandbox);
    const started = ofSandbox.find(({ events }) => events.includes('SandboxStarted'))?.storedAt ?? 0;
    expect(await all({ since: started + 1 })).toEqual(records.filter(({ storedAt }) => storedAt > started));
    expect((await all({ until: started })).length).toBeLessThan(records.length);
    await expect(bot.admin.audit().next()).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const cli = await dsec('audit', '--json', '--project', 'audited', '--kind', 'sandbox', '--since', '1h');
    expect(
      cli.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).version),
    ).toEqual(ofSandbox.map(({ version }) => version));
    expect((await dsec('audit', '--project', 'audited', '--since', 'yesterday')).err).toMatch(/--since/);
    await sandbox.delete();
  });
});
