/** Two sandboxes on one node, and the node: none sees, reaches or changes the other. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sandbox } from '#sdk/mod.ts';
import { firstLine } from '#test/helpers/commands.ts';
import { denied, Lab } from './lab.ts';

let lab: Lab;
let one: Sandbox;
let two: Sandbox;

beforeAll(async () => {
  lab = await Lab.open();
  [one, two] = await Promise.all([lab.sandbox(), lab.sandbox()]);
});
afterAll(async () => lab?.close());

const NAME = 'a-place-to-meet';
const PORT = '7777';
const UNREACHED = denied({ ECONNREFUSED: ['abstract socket', 'port of lo'], ENOENT: ['shared memory', 'message queue', '/dev/shm'] });
const REACHED = new Map([...UNREACHED.keys()].map((name) => [name, 'ok']));

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

test('sockets, shared memory, queues and files in memory of one sandbox do not exist in another, nor on the host', async () => {
  const offer = await one.start(['/probe/sockets', 'offer', NAME, PORT]);
  expect(await firstLine(offer)).toBe('offer\tok');
  expect(await lab.inside(two, ['sockets', 'reach', NAME, PORT])).toEqual(UNREACHED);
  expect(lab.onHost('sockets', 'reach', NAME, PORT)).toEqual(UNREACHED);
  expect(await lab.inside(one, ['sockets', 'reach', NAME, PORT])).toEqual(REACHED); // control: where they are, they are reached
  await offer.kill();
});

test('what the host listens on, by an abstract name or on its loopback, cannot be reached from inside', async () => {
  const port = String(await freePort());
  const end = await lab.stayOnHost('sockets', 'listen', NAME, port);
  expect(await lab.inside(two, ['sockets', 'reach', NAME, port])).toEqual(UNREACHED);
  const onHost = lab.onHost('sockets', 'reach', NAME, port);
  expect(['abstract socket', 'port of lo'].map((way) => onHost.get(way))).toEqual(['ok', 'ok']);
  end();
});

test('processes of another sandbox and of the host have no number inside', async () => {
  const theirs = await lab.aetherPid(two);
  for (const pid of [theirs, process.pid]) {
    const tried = await one.runShell(`kill -0 ${pid}; ls -d /proc/${pid}`);
    expect(tried.stderr).toMatch(/No such process/);
    expect(tried.stderr).toMatch(/No such file/);
  }
  const victim = await two.start('exec sleep 1000');
  await one.runShell('kill -9 -1');
  expect((await victim.view()).state).toBe('running');
  expect(await lab.aetherPid(two)).toBe(theirs);
  await victim.kill();
});

test('a shell that is overwritten inside is overwritten there alone', async () => {
  const spoilt = await one.exec([
    '/bin/busybox',
    'sh',
    '-c',
    'cp /bin/busybox /w/busybox && /w/busybox rm /bin/busybox && printf "#!/w/busybox sh\\necho hooked\\n" > /bin/busybox && /w/busybox chmod 755 /bin/busybox',
  ]);
  expect(spoilt.stderr).toBe('');
  expect((await one.exec(['/bin/sh', '-c', 'echo clean'])).stdout).toBe('hooked\n');
  expect((await two.exec(['/bin/sh', '-c', 'echo clean'])).stdout).toBe('clean\n');
  const later = await lab.sandbox();
  expect((await later.exec(['/bin/sh', '-c', 'echo clean'])).stdout).toBe('clean\n');
  await later.stop();
});
