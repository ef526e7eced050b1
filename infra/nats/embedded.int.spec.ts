/** The embedded bus against a real nats-server: who may say what (INV-TENANT), keys, ports. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type Msg, type NatsConnection, nkeyAuthenticator, type Subscription } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { clientInboxPrefix } from './config.ts';
import { type EmbeddedBus, startEmbeddedBus } from './embedded.ts';
import { freePort } from './ports.ts';
import type { Role } from './roles.ts';

const PROJECT_ROOT = join(import.meta.dirname, '../..');
const RED = 'red' as ProjectName;
const BLUE = 'blue' as ProjectName;

let directory: string;
let bus: EmbeddedBus;
const open: NatsConnection[] = [];

const startBus = (root: string, port = 0): Promise<EmbeddedBus> =>
  startEmbeddedBus({
    busDir: join(root, 'bus'),
    credentialsDir: join(root, 'credentials'),
    contextFile: join(root, 'context.json'),
    port,
    syncIntervalMs: 1_000,
    edge: 'n1' as EdgeName,
    clients: [
      { project: RED, name: 'main' },
      { project: BLUE, name: 'main' },
    ],
    projectRoot: PROJECT_ROOT,
    env: process.env,
    onEvent: () => {},
  });

const connectWith = async (nkeySeed: string, inboxPrefix: string): Promise<NatsConnection> => {
  const connection = await connect({ servers: [...bus.servers], authenticator: nkeyAuthenticator(new TextEncoder().encode(nkeySeed)), inboxPrefix });
  open.push(connection);
  return connection;
};
const asRole = (role: Role): Promise<NatsConnection> => connectWith(bus.keys.roles[role].nkeySeed, '_INBOX');
const asClient = (project: ProjectName): Promise<NatsConnection> => {
  const key = bus.keys.clients.find((client) => client.project === project);
  if (!key) throw new Error(`no client of ${project}`);
  return connectWith(key.nkeySeed, clientInboxPrefix(key));
};

/** Messages that have arrived once everything the connections sent so far has been routed. */
const arrivedAt = async (subscription: Subscription, ...senders: readonly NatsConnection[]): Promise<string[]> => {
  for (const sender of senders) await sender.flush();
  await subscription.drain();
  const messages: string[] = [];
  for await (const message of subscription) messages.push(`${message.subject} ${message.string()}`);
  return messages;
};
const firstOf = async (subscription: Subscription): Promise<string> => {
  for await (const message of subscription) return `${message.subject} ${message.string()}`;
  throw new Error('the subscription ended without a message');
};
/** What the server says when it refuses a publish or a subscription. */
const refusalOf = (connection: NatsConnection): Promise<string> =>
  new Promise((resolve) => {
    void (async () => {
      for await (const status of connection.status()) if (status.type === 'error') return resolve(status.error.message);
    })();
  });
const answerWith = (connection: NatsConnection, subject: string, text: string): Subscription =>
  connection.subscribe(subject, { callback: (_error: Error | null, message: Msg) => void message.respond(text) });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'dsec-bus-'));
  bus = await startBus(directory);
});
afterAll(async () => {
  for (const connection of open) await connection.close();
  await bus?.stop();
  await rm(directory, { recursive: true, force: true });
});

describe('across accounts', () => {
  test('a client asks the apiserver and an Edge, and gets their answers', async () => {
    const apiserver = await asRole('apiserver');
    const edge = await asRole('edge');
    answerWith(apiserver, 'dsec.api.*.*', 'from the apiserver');
    answerWith(edge, 'dsec.op.*.n1.*.*', 'from the Edge');
    await Promise.all([apiserver.flush(), edge.flush()]);
    const red = await asClient(RED);
    expect((await red.request('dsec.api.red.info', '{}')).string()).toBe('from the apiserver');
    expect((await red.request('dsec.op.red.n1.sb-0-x-n1.exec', '{}')).string()).toBe('from the Edge');
  });

  test('a request that nobody serves is refused at once', async () => {
    const red = await asClient(RED);
    await expect(red.request('dsec.op.red.elsewhere.sb.exec', '{}', { timeout: 5_000 })).rejects.toThrow(/no responders/);
  });

  test('a stored commit is republished to its own project only', async () => {
    const operator = await asRole('operator');
    const streams = await jetstreamManager(operator);
    await streams.streams.add({ name: 'EVENTS_9', subjects: ['dsec.ev.9.>'], republish: { src: 'dsec.ev.9.>', dest: 'dsec.out.9.>' } });
    const [red, blue] = [await asClient(RED), await asClient(BLUE)];
    const seenByRed = red.subscribe('dsec.out.*.red.*.*.*');
    const seenByBlue = blue.subscribe('dsec.out.*.blue.*.*.*');
    await Promise.all([red.flush(), blue.flush()]);
    const edge = await asRole('edge');
    await edge.request('dsec.ev.9.red.sandbox.n1.sb-9-a-n1', 'a commit');
    expect(await firstOf(seenByRed)).toBe('dsec.out.9.red.sandbox.n1.sb-9-a-n1 a commit');
    expect(await arrivedAt(seenByBlue, edge, blue)).toEqual([]);
  });
});

describe('what a client may not', () => {
  test.each([
    ['another project’s API', 'dsec.api.blue.list'],
    ['another project’s operations', 'dsec.op.blue.n1.sb.exec'],
    ['commands', 'dsec.cmd.edge.n1._'],
    ['commits', 'dsec.ev.0.red.sandbox.n1.sb'],
    ['republished commits', 'dsec.out.0.red.sandbox.n1.sb'],
    ['beats', 'dsec.beat.n1'],
    ['JetStream', '$JS.API.STREAM.LIST'],
    ['another client’s inbox', '_INBOX.blue.main.x'],
  ])('publish to %s', async (_what, subject) => {
    const red = await asClient(RED);
    const refusal = refusalOf(red);
    red.publish(subject, 'from red');
    await red.flush();
    expect(await refusal).toMatch(/Permissions Violation for Publish/i);
  });

  test.each(['dsec.out.*.blue.*.*.*', 'dsec.out.>', 'dsec.api.>', 'dsec.ev.>', '_INBOX.>', '_INBOX.blue.main.>', '$SYS.>', '>'])(
    'subscribe to %s',
    async (subject) => {
      const red = await asClient(RED);
      const refusal = refusalOf(red);
      red.subscribe(subject, { callback: () => {} });
      await red.flush();
      expect(await refusal).toMatch(/Permissions Violation for Subscription/i);
    },
  );

  test('have an answer published onto another project’s subject by naming it as reply', async () => {
    const apiserver = await asRole('apiserver');
    const asked: string[] = [];
    const answers = apiserver.subscribe('dsec.api.*.*', {
      queue: 'reply-trick',
      callback: (_error, message) => {
        asked.push(message.subject);
        message.respond('an answer');
      },
    });
    const blue = await asClient(BLUE);
    const blueInbox = blue.subscribe('_INBOX.blue.main.>');
    await Promise.all([apiserver.flush(), blue.flush()]);
    const red = await asClient(RED);
    red.publish('dsec.api.red.info', '{}', { reply: 'dsec.api.blue.stop' });
    red.publish('dsec.api.red.info', '{}', { reply: '_INBOX.blue.main.guess' });
    await red.flush();
    await red.request('dsec.api.red.info', '{}');
    await apiserver.flush();
    expect(await arrivedAt(blueInbox, apiserver, blue)).toEqual([]);
    expect(asked.filter((subject) => subject.includes('blue'))).toEqual([]);
    answers.unsubscribe();
  });
});

describe('what a role may not', () => {
  test.each([
    ['edge', 'dsec.ev.0.red.sandbox.n2.sb'],
    ['edge', 'dsec.ev.0.red.request._.rq'],
    ['placement', 'dsec.ev.0.red.sandbox.n1.sb'],
    ['apiserver', 'dsec.ev.0.red.request._.rq'],
    ['watcher', 'dsec.cmd.edge.n1._'],
  ] as const)('%s: publish to %s', async (role, subject) => {
    const connection = await asRole(role);
    const refusal = refusalOf(connection);
    connection.publish(subject, 'x');
    await connection.flush();
    expect(await refusal).toMatch(/Permissions Violation for Publish/i);
  });
});

describe('files and ports', () => {
  test('keys and context are for their owner alone, and are kept', async () => {
    const context = JSON.parse(await readFile(join(directory, 'context.json'), 'utf8'));
    expect(context).toEqual({ servers: bus.servers, project: 'red', credentials: { nkeySeed: expect.stringMatching(/^SU/) }, inboxPrefix: '_INBOX.red.main' });
    for (const file of ['context.json', 'credentials/role-edge.nk', 'credentials/client-red.main.nk'])
      expect((await stat(join(directory, file))).mode & 0o777).toBe(0o600);
  });

  test('an unknown key is refused', async () => {
    const other = await mkdtemp(join(tmpdir(), 'dsec-bus-'));
    const { ensureKeys } = await import('./credentials.ts');
    const stranger = await ensureKeys(other, []);
    await expect(connectWith(stranger.roles.operator.nkeySeed, '_INBOX')).rejects.toThrow(/authorization/i);
    await rm(other, { recursive: true });
  });

  test('a client without a key is refused', async () => {
    await expect(connect({ servers: [...bus.servers] })).rejects.toThrow(/authorization/i);
  });

  test('a second platform on the same directory is refused and harms nobody', async () => {
    await expect(startBus(directory)).rejects.toMatchObject({ code: 'HOST_UNFIT', message: expect.stringContaining('another nats-server') });
    expect(await (await asClient(RED)).rtt()).toBeGreaterThanOrEqual(0);
  });

  test('a fixed port that is taken is named', async () => {
    const other = await mkdtemp(join(tmpdir(), 'dsec-bus-'));
    const port = await freePort();
    const stranger: Server = createServer().listen(port, '127.0.0.1');
    await expect(startBus(other, port)).rejects.toMatchObject({ code: 'HOST_UNFIT', message: expect.stringContaining(String(port)) });
    stranger.close();
    await rm(other, { recursive: true });
  });
});
