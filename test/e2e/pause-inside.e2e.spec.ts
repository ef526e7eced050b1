/**
 * What goes on inside a sandbox outlives a pause: connections, conversations, timers, requests under way, readers of output; and each way to
 * need the inside resumes it by itself, once. @paper §6.3
 */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { buildLayer } from '#runtime/images/mod.ts';
import type { Command, DsecClient, Sandbox } from '#sdk/mod.ts';
import { copyProgram } from '#test/helpers/dynamic-programs.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { makeBusyboxRoot, type TestPlatform } from '#test/helpers/platform.ts';

/** Longer than every timer inside: what fires twice, or is lost, shows. */
const PAUSE_MS = 5_000;

let host: TestPlatform;
let dsec: DsecClient;

/** HTTP on 8080, an echo of raw bytes on 9000; the second answers only after a while. */
const SERVER = `
const http = require('http'), net = require('net');
http.createServer((q, s) => q.url === '/slow' ? setTimeout(() => s.end('late'), 2000) : s.end('hello')).listen(8080, '127.0.0.1');
net.createServer((c) => c.pipe(c)).listen(9000, '127.0.0.1', () => console.log('up'));
`;
/** One asks over the unix socket, the other answers the next number; each number that was answered is printed. */
const CONVERSATION = `
const net = require('net');
net.createServer((c) => c.on('data', (d) => c.write(String(Number(d) + 1)))).listen('/tmp/talk', () => {
  const asking = net.connect('/tmp/talk', () => asking.write('0'));
  asking.on('data', (d) => { console.log(String(d)); if (Number(d) === 40) process.exit(0); setTimeout(() => asking.write(String(d)), 40); });
});
`;
const COUNTED = `${Array.from({ length: 40 }, (_, i) => i + 1).join('\n')}\n`;

givenPlatform({ overrides: { swapMiB: 1_024 } }, async (given) => {
  ({ host, dsec } = given);
  const root = join(host.dir, 'with-node');
  makeBusyboxRoot(root);
  copyProgram(root, process.execPath, '/bin/node');
  await buildLayer(host.store, { name: 'with-node', kind: 'base', source: { type: 'directory', path: root } });
});

const box = (): Promise<Sandbox> => dsec.runContainer({ image: 'with-node', memoryLimitMb: 512, pidsLimit: 200 });
const printed = async (command: Command, text: string): Promise<void> => {
  let all = '';
  for await (const more of command.stdout.text()) {
    all += more;
    if (all.includes(text)) return;
  }
  throw new Error(`it ended without ${text}: ${all}`);
};
const withServer = async (): Promise<Sandbox> => {
  const sandbox = await box();
  await printed(await sandbox.start(['node', '-e', SERVER]), 'up');
  return sandbox;
};
const count = async (sandbox: Sandbox, type: string): Promise<number> => {
  let found = 0;
  for await (const commit of sandbox.events()) found += commit.events.filter((event) => event.type === type).length;
  return found;
};
/** Rests for a while, and nothing that only looks has woken it. */
const restThrough = async (sandbox: Sandbox): Promise<void> => {
  await sandbox.pause();
  await delay(PAUSE_MS);
  expect((await sandbox.refresh()).status).toBe('paused');
};

describe.concurrent('goes on after a pause', () => {
  test('a connection through a port, which stays open and wakes it by what is sent', async () => {
    const sandbox = await withServer();
    const connection = await sandbox.connectPort(9000);
    connection.write('before');
    expect(String((await once(connection, 'data'))[0])).toBe('before');
    await restThrough(sandbox);
    connection.write('after');
    expect(String((await once(connection, 'data'))[0])).toBe('after');
    connection.destroy();
    expect(await count(sandbox, 'SandboxResumed')).toBe(1);
    await sandbox.delete();
  });

  test('an HTTP request under way, which is answered once it goes on', async () => {
    const sandbox = await withServer();
    const asked = sandbox.fetch(8080, '/slow');
    await delay(500);
    await restThrough(sandbox);
    await sandbox.resume();
    expect(await (await asked).text()).toBe('late');
    await sandbox.delete();
  });

  test('a conversation over a unix socket, read by somebody who stays attached: nothing is lost or doubled', async () => {
    const sandbox = await box();
    const talk = await sandbox.start(['node', '-e', CONVERSATION]);
    const reading = talk.result();
    await printed(sandbox.attach(talk.execId), '3\n');
    await restThrough(sandbox);
    const seen = (await talk.view()).stdout.totalBytes;
    expect(seen).toBeLessThan(COUNTED.length);
    await sandbox.resume();
    expect(await reading).toMatchObject({ stdout: COUNTED, exitCode: 0 });
    expect((await sandbox.attach(talk.execId).result()).stdout).toBe(COUNTED);
    await sandbox.delete();
  });

  test('timers: they stand still, then fire once each', async () => {
    const sandbox = await box();
    const sleeper = await sandbox.start(['sh', '-c', 'echo up; sleep 3; echo fired >>/w/fired']);
    const timer = await sandbox.start(['node', '-e', "console.log('up'); setTimeout(() => console.log('rang'), 3000)"]);
    await Promise.all([printed(sleeper, 'up'), printed(timer, 'up')]);
    await restThrough(sandbox);
    const fired = join(host.dir, 'data/sandboxes', sandbox.id, 'upper/w/fired');
    expect(existsSync(fired)).toBe(false);
    await sandbox.resume();
    expect((await sleeper.wait()).exitCode).toBe(0);
    expect(readFileSync(fired, 'utf8')).toBe('fired\n');
    expect((await timer.result()).stdout).toBe('up\nrang\n');
    await sandbox.delete();
  });
});

describe.concurrent('is a reason to resume, each on its own', () => {
  test.each<[string, (sandbox: Sandbox, reading: Command) => Promise<unknown>, unknown]>([
    ['input', async (_, reading) => [await reading.stdin.write('said\n'), await reading.stdin.close(), (await reading.result()).stdout].at(-1), 'up\nsaid\n'],
    ['a signal', async (_, reading) => [await reading.signal('KILL'), (await reading.wait()).signal], [true, 'KILL']],
    ['a file that is read', async (sandbox) => Buffer.from(await sandbox.files.read('/etc/group')).toString(), expect.stringContaining('root')],
    [
      'a file that is written',
      async (sandbox) => {
        await sandbox.files.write('/w/new', 'x');
        return readFileSync(join(host.dir, 'data/sandboxes', sandbox.id, 'upper/w/new'), 'utf8');
      },
      'x',
    ],
    ['a request to a server inside', async (sandbox) => (await sandbox.fetch(8080, '/')).text(), 'hello'],
    [
      'a connection',
      async (sandbox) => {
        const connection = await sandbox.connectPort(9000);
        connection.write('x');
        const [echoed] = await once(connection, 'data');
        connection.destroy();
        return String(echoed);
      },
      'x',
    ],
    [
      'a shell',
      async (sandbox) => {
        await using shell = await sandbox.openShell();
        return (await shell.run('echo here')).stdout;
      },
      'here\n',
    ],
    ['a command', async (sandbox) => (await sandbox.exec(['echo', 'here'])).stdout, 'here\n'],
  ])('%s', async (_, ask, answer) => {
    const sandbox = await withServer();
    const reading = await sandbox.start(['sh', '-c', 'echo up; cat'], { stdin: 'open' });
    await printed(sandbox.attach(reading.execId), 'up');
    await sandbox.pause();
    expect(await ask(sandbox, reading)).toEqual(answer);
    expect((await sandbox.refresh()).status).toBe('running');
    expect([await count(sandbox, 'SandboxResuming'), await count(sandbox, 'SandboxResumed')]).toEqual([1, 1]);
    await sandbox.delete();
  });

  test('and together: forty who ask in different ways, one resume', async () => {
    const sandbox = await withServer();
    await sandbox.pause();
    const ways = [
      async (i: number) => (await sandbox.exec(['echo', String(i)])).stdout,
      async (i: number) => `${await (await sandbox.fetch(8080, '/')).text()} ${i}`,
      (i: number) => sandbox.files.write(`/w/${i}`, String(i)).then(() => `written ${i}`),
      async (i: number) => `${(await sandbox.files.stat('/etc')).type} ${i}`,
    ];
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => ways[i % 4]?.(i)));
    expect(answers).toEqual(Array.from({ length: 40 }, (_, i) => [`${i}\n`, `hello ${i}`, `written ${i}`, `directory ${i}`][i % 4]));
    expect([await count(sandbox, 'SandboxResuming'), await count(sandbox, 'SandboxResumed')]).toEqual([1, 1]);
    await sandbox.delete();
  });
});
