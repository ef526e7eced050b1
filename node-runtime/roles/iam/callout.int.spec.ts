/** Auth callout against a real nats-server: who is let in, and what a token can say (INV-TENANT). */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, headers, type NatsConnection, nkeyAuthenticator, nkeys, tokenAuthenticator } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { ProjectState } from '#bus/project/schema.ts';
import { Directory } from '#actors/project/directory.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { natsConfig } from '#infra/nats/config.ts';
import { freePort } from '#infra/nats/ports.ts';
import { locateNatsServer } from '#infra/nats/locate.ts';
import { ROLES, type Role } from '#infra/nats/roles.ts';
import { connectBus } from '#sdk/transport/nats-bus.ts';
import { createLog } from '../../log/log.ts';
import { projectRoot } from '../../project-root.ts';
import { authenticateBy } from '../identity.ts';
import { serveCallout } from './callout.ts';
import { Kicker } from './kick.ts';

const WAIT_MS = 10_000;
const seedOf = (pair: { getSeed(): Uint8Array }) => new TextDecoder().decode(pair.getSeed());
const roles = Object.fromEntries(ROLES.map((role) => [role, nkeys.createUser()])) as Record<Role, ReturnType<typeof nkeys.createUser>>;
const issuer = nkeys.createAccount();
const systemKey = nkeys.createUser();
const [redKey, lateKey, goneKey, strangerKey] = [0, 1, 2, 3].map(() => nkeys.createUser()) as [typeof issuer, typeof issuer, typeof issuer, typeof issuer];
const SECRET = 'dsec_a-secret-of-blue';

const directory = new Directory();
let dir: string;
let port: number;
let end: () => void;
let platform: NatsConnection;
let callout: { close(): void };
const open: NatsConnection[] = [];

const credential = (n: number, proof: object, expiresAt: number | null = null) => ({ id: `cr-${String(n).repeat(16)}`, proof, createdAt: 0, expiresAt });
const nkeyProof = (pair: typeof issuer) => ({ type: 'nkey', publicKey: pair.getPublicKey() });
const learn = (name: string, version: number, credentials: object[]) =>
  directory.learn(
    ProjectState.parse({
      name,
      ancestors: [],
      createdAt: 0,
      limits: {},
      principals: [{ name: 'bot', kind: 'agent', createdAt: 0, credentials }],
      grants: [{ principal: `${name}/bot`, role: 'runner', actions: [] }],
      children: [],
      leases: [],
      fence: {},
    }),
    version,
  );
const connectWith = async (
  authenticator: Parameters<typeof connect>[0] extends infer O ? (O extends { authenticator?: infer A } ? A : never) : never,
  inboxPrefix?: string,
) => {
  const connection = await connect({
    servers: `127.0.0.1:${port}`,
    authenticator: authenticator as never,
    timeout: WAIT_MS,
    reconnect: false,
    noAsyncTraces: true,
    ...(inboxPrefix ? { inboxPrefix } : {}),
  });
  open.push(connection);
  return connection;
};
const asKey = (pair: typeof issuer, inboxPrefix?: string) => connectWith(nkeyAuthenticator(pair.getSeed()) as never, inboxPrefix);
const refusal = (connecting: Promise<NatsConnection>) =>
  connecting.then(
    () => 'let in',
    (thrown: Error) => thrown.message,
  );

const startCallout = async (): Promise<{ close(): void }> => {
  const connection = await asKey(roles.iam, '_INBOX');
  const serving = serveCallout({
    connection,
    directory,
    clock: systemClock,
    log: createLog('iam', 'error'),
    issuer: { seed: seedOf(issuer), publicKey: issuer.getPublicKey() },
  });
  await connection.flush();
  return serving;
};

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-callout-'));
  port = await freePort();
  const { path } = await locateNatsServer({ env: process.env, projectRoot: projectRoot() });
  const text = natsConfig({
    serverName: 'callout',
    port,
    storeDir: join(dir, 'store'),
    logFile: join(dir, 'log'),
    syncIntervalMs: 1_000,
    edge: 'n1' as EdgeName,
    roles: Object.fromEntries(ROLES.map((role) => [role, roles[role].getPublicKey()])) as Record<Role, string>,
    systemUser: systemKey.getPublicKey(),
    clients: [],
    calloutIssuer: issuer.getPublicKey(),
  });
  writeFileSync(join(dir, 'nats.json'), text);
  const server = spawn(path, ['-c', join(dir, 'nats.json')], { stdio: 'ignore' });
  end = () => void server.kill('SIGKILL');
  for (;;) {
    try {
      platform = await asKey(roles.apiserver, '_INBOX');
      break;
    } catch {
      await delay(50);
    }
  }
  learn('red', 1, [credential(1, nkeyProof(redKey)), credential(2, nkeyProof(lateKey), Date.now() - 1), credential(3, nkeyProof(goneKey))]);
  learn('blue', 1, [credential(4, { type: 'secret', sha256: createHash('sha256').update(SECRET).digest('hex') })]);
  callout = await startCallout();
  const authenticate = authenticateBy(directory, systemClock);
  platform.subscribe('dsec.api.*.*', {
    callback: (_, message) => {
      let who: string;
      try {
        who = authenticate(message, message.subject.split('.')[2] as ProjectName).principal;
      } catch (thrown) {
        who = (thrown as { code: string }).code;
      }
      message.respond(`${message.subject} ${who}`);
    },
  });
  await platform.flush();
});
afterAll(async () => {
  for (const connection of open) await connection.close();
  end?.();
  rmSync(dir, { recursive: true, force: true });
});

test('a key that signs and a secret that hashes are let in, and every request says who they are', async () => {
  const red = await asKey(redKey, '_INBOX.red.cr-1111111111111111');
  expect((await red.request('dsec.api.red.whoami', '')).string()).toBe('dsec.api.red.whoami red/bot');
  const blue = await connectWith(tokenAuthenticator(SECRET) as never, '_INBOX.blue.cr-4444444444444444');
  expect((await blue.request('dsec.api.blue.whoami', '')).string()).toBe('dsec.api.blue.whoami blue/bot');
  const forged = headers();
  forged.append('Nats-Request-Info', JSON.stringify({ acc: 'CLIENTS', user: 'x', name_tag: redKey.getPublicKey() }));
  expect((await blue.request('dsec.api.blue.whoami', '', { headers: forged, timeout: WAIT_MS })).string()).toBe('dsec.api.blue.whoami blue/bot');
});

test('wrong, expired and revoked credentials are refused', async () => {
  expect(await refusal(asKey(strangerKey))).toMatch(/authorization/i);
  expect(await refusal(connectWith(tokenAuthenticator('dsec_wrong') as never))).toMatch(/authorization/i);
  expect(await refusal(asKey(lateKey))).toMatch(/authorization/i);
  const gone = await asKey(goneKey);
  const stays = await asKey(redKey);
  const kicker = new Kicker(await asKey(systemKey, '_INBOX'), directory, createLog('iam', 'error'));
  learn('red', 2, [credential(1, nkeyProof(redKey))]);
  expect(await refusal(asKey(goneKey))).toMatch(/authorization/i);
  kicker.changed(); // who was let in with it before is sent away, and nobody else
  await gone.closed();
  expect(stays.isClosed()).toBe(false);
  kicker.close();
});

test('a token of one project on the subjects, inboxes and answers of another', async () => {
  const red = await asKey(redKey, '_INBOX.red.cr-1111111111111111');
  const blue = await connectWith(tokenAuthenticator(SECRET) as never, '_INBOX.blue.cr-4444444444444444');
  const violations: string[] = [];
  void (async () => {
    for await (const status of red.status()) if (status.type === 'error') violations.push(status.error.message);
  })();
  const said: string[] = [];
  const edge = await asKey(roles.edge, '_INBOX');
  edge.subscribe('dsec.op.*.n1.*.*', { callback: (_, message) => void said.push(message.subject) });
  const seen: string[] = [];
  platform.subscribe('dsec.api.blue.stop', { callback: (_, message) => void seen.push(message.string()) });
  await Promise.all([platform.flush(), edge.flush()]);
  for (const subject of [
    'dsec.api.blue.get',
    'dsec.op.blue.n1.sb.exec',
    '$JS.API.INFO',
    'dsec.cmd.create.0',
    'dsec.iam.drawQuota',
    '_INBOX.blue.cr-4444444444444444.x',
    '$SYS.REQ.USER.AUTH',
  ])
    red.publish(subject, 'x', { reply: '_INBOX.red.cr-1111111111111111.x' });
  for (const subject of ['_INBOX.blue.>', '_INBOX.>', '_R_.>', 'dsec.out.*.blue.*.*.*', 'dsec.api.>', 'dsec.ev.>'])
    red.subscribe(subject, { callback: () => {} });
  // The server does not look at reply subjects: an answer that is to land on another's subject must lead nowhere.
  red.publish('dsec.api.red.get', 'x', { reply: 'dsec.api.blue.stop' });
  red.publish('dsec.api.red.get', 'x', { reply: 'dsec.op.blue.n1.sb.exec' });
  await red.flush();
  await blue.flush();
  await expect.poll(() => violations.length, { timeout: WAIT_MS }).toBe(13);
  await Promise.all([platform.flush(), edge.flush()]);
  expect(seen).toEqual([]);
  expect(said).toEqual([]);
});

test('while no iam answers, nobody new is let in, and who is in stays', async () => {
  const red = await asKey(redKey, '_INBOX.red.cr-1111111111111111');
  callout.close();
  expect(await refusal(asKey(redKey))).toMatch(/authorization|timeout/i);
  expect((await red.request('dsec.api.red.whoami', '')).string()).toBe('dsec.api.red.whoami red/bot');
});

test('an SDK tells that from bad credentials, is told so, and is let in when an iam is there again', async () => {
  const context = (pair: typeof issuer) => ({
    servers: [`127.0.0.1:${port}`],
    project: 'red' as ProjectName,
    credentials: { nkeySeed: seedOf(pair) },
    inboxPrefix: '_INBOX.red.cr-1111111111111111',
  });
  const outcome = (pair: typeof issuer, timeoutMs: number) =>
    connectBus(context(pair), { name: 'test', timeoutMs }).then(
      async (bus) => {
        await bus.close();
        return 'let in';
      },
      (thrown: { code: string; retry: string }) => `${thrown.code} ${thrown.retry}`,
    );
  expect(await outcome(redKey, 2_500)).toBe('IAM_UNAVAILABLE same');
  expect(await outcome(strangerKey, 2_500)).toBe('IAM_UNAVAILABLE same');
  const waiting = outcome(redKey, 60_000);
  callout = await startCallout();
  expect(await waiting).toBe('let in');
  expect(await outcome(strangerKey, 60_000)).toBe('UNAUTHENTICATED never');
  // One server that is cut off beside it does not make the other's refusal slow.
  const [nobody] = [await freePort()];
  const beside = { ...context(strangerKey), servers: [`127.0.0.1:${nobody}`, `127.0.0.1:${port}`] };
  await expect(connectBus(beside, { name: 'test', timeoutMs: 5_000 })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  const away = { ...context(redKey), servers: [`127.0.0.1:${nobody}`] };
  await expect(connectBus(away, { name: 'test', timeoutMs: 200 })).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
});
