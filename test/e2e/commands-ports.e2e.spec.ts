/** Servers inside a sandbox: HTTP by `sandbox.fetch`, on loopback and unix sockets, and raw connections. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildLayer } from '#runtime/images/mod.ts';
import type { Command, DsecClient, Sandbox } from '#sdk/mod.ts';
import { copyProgram } from '#test/helpers/dynamic-programs.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { makeBusyboxRoot, type TestPlatform } from '#test/helpers/platform.ts';

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

const MIB = 1024 * 1024;

/** Answers by path; port 8080 on IPv4, 8081 on IPv6 only, a unix socket, and an echo of raw bytes on 9000. */
const SERVER = `
const http = require('http'), net = require('net'), { createHash } = require('crypto');
let hits = 0;
const routes = {
  '/hello': (q, s) => { s.setHeader('X-Two', ['a', 'b']); s.end('hello ' + q.headers.host); },
  '/hits': (q, s) => s.end(String(hits)),
  '/hit': (q, s) => { hits += 1; s.end('counted'); },
  '/echo': (q, s) => { s.writeHead(201, { 'x-method': q.method, 'x-type': q.headers['content-type'] || '', 'x-length': q.headers['content-length'] || q.headers['transfer-encoding'] || '' }); q.pipe(s); },
  '/digest': (q, s) => { const h = createHash('sha256'); let n = 0; q.on('data', (c) => { h.update(c); n += c.length; }).on('end', () => s.end(n + ' ' + h.digest('hex'))); },
  '/big': (q, s) => { const block = Buffer.alloc(65536, 'x'); let left = 1024; const more = () => { while (left-- > 0) if (!s.write(block)) return s.once('drain', more); s.end('END'); }; more(); },
  '/slow': (q, s) => setTimeout(() => s.end('late'), 3000),
  '/never': () => {},
  '/ticks': (q, s) => { let n = 0; const t = setInterval(() => { s.write('tick ' + n + '\\n'); if (++n === 5) { clearInterval(t); s.end(); } }, 50); },
  '/cut': (q, s) => { s.writeHead(200, { 'content-length': '1000' }); s.write('half'); setTimeout(() => q.socket.destroy(), 50); },
  '/none': (q, s) => { s.statusCode = 204; s.end(); },
  '/early': (q, s) => { s.statusCode = 413; s.end('too much'); },
};
const serve = (q, s) => (routes[q.url.split('?')[0]] || ((q, s) => { s.statusCode = 404; s.end('no ' + q.url); }))(q, s);
http.createServer(serve).listen(8080, '127.0.0.1');
http.createServer(serve).listen({ port: 8081, host: '::1', ipv6Only: true });
http.createServer(serve).listen('/tmp/server.sock');
net.createServer({ allowHalfOpen: true }, (c) => c.pipe(c)).listen(9000, '127.0.0.1');
net.createServer((c) => c.end('no http at all\\n')).listen(9001, '127.0.0.1');
net.createServer((c) => c.destroy()).listen(9002, '127.0.0.1');
net.createServer(() => {}).listen(9003, '127.0.0.1', () => console.log('up'));
`;

const startServer = async (sandbox: Sandbox): Promise<Command> => {
  const server = await sandbox.start(['node', '-e', SERVER]);
  for await (const text of server.stdout.text()) if (text.includes('up')) break;
  return server;
};

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  const root = join(host.dir, 'with-node');
  makeBusyboxRoot(root);
  copyProgram(root, process.execPath, '/bin/node');
  await buildLayer(host.store, { name: 'with-node', kind: 'base', source: { type: 'directory', path: root } });
  box = await dsec.runContainer({ image: 'with-node', memoryLimitMb: 1024, pidsLimit: 200 });
  await startServer(box);
});

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('answers', () => {
  test('status, headers in their order, body; the loopback of either family, and a unix socket', async () => {
    const answer = await box.fetch(8080, '/hello?x=1');
    expect([answer.status, answer.statusText, answer.headers.get('x-two'), await answer.text()]).toEqual([200, 'OK', 'a, b', 'hello localhost:8080']);
    expect(await (await box.fetch(8081, '/hello')).text()).toBe('hello localhost:8081');
    expect(await (await box.fetch('/tmp/server.sock', '/hello', { headers: { host: 'named' } })).text()).toBe('hello named');
    const missing = await box.fetch(8080, '/nowhere');
    expect([missing.status, missing.ok, await missing.text()]).toEqual([404, false, 'no /nowhere']);
    const none = await box.fetch(8080, '/none');
    expect([none.status, none.body]).toEqual([204, null]);
  });

  test('a long answer comes whole, in pieces, and only as fast as it is read', async () => {
    const answer = await box.fetch(8080, '/big');
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.byteLength;
      hash.update(chunk);
    }
    expect([bytes, hash.digest('hex')]).toEqual([64 * MIB + 3, sha256(Buffer.concat([Buffer.alloc(64 * MIB, 'x'), Buffer.from('END')]))]);
  });

  test('a stream of events arrives as it is sent', async () => {
    const answer = await box.fetch(8080, '/ticks');
    const pieces: string[] = [];
    for await (const chunk of answer.body ?? []) pieces.push(Buffer.from(chunk).toString());
    expect(pieces.join('')).toBe('tick 0\ntick 1\ntick 2\ntick 3\ntick 4\n');
    expect(pieces.length).toBeGreaterThan(1);
  });

  test('many at once', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, async (_, i) => (await box.fetch(8080, '/echo', { body: `body ${i}` })).text()));
    expect(answers).toEqual(Array.from({ length: 100 }, (_, i) => `body ${i}`));
  });
});

describe('bodies', () => {
  const long = randomBytes(5 * MIB);

  test.each([
    ['nothing', undefined, 'GET', '', ''],
    ['text', 'héllo', 'POST', 'text/plain;charset=UTF-8', '6'],
    ['bytes', Uint8Array.of(0, 255, 10), 'POST', '', '3'],
    ['no bytes', '', 'POST', 'text/plain;charset=UTF-8', '0'],
    ['many bytes', long, 'POST', '', String(long.byteLength)],
  ])('%s', async (_, body, method, type, length) => {
    const answer = await box.fetch(8080, '/echo', { body });
    const echoed = Buffer.from(await answer.arrayBuffer());
    expect([answer.status, answer.headers.get('x-method'), answer.headers.get('x-type'), answer.headers.get('x-length')]).toEqual([201, method, type, length]);
    expect(sha256(echoed)).toBe(sha256(Buffer.from(body ?? '')));
  });

  test('a stream of unknown length goes in chunks, and an error of it is the call’s', async () => {
    async function* parts(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 20; i += 1) yield Buffer.alloc(300_000, i);
    }
    const answer = await box.fetch(8080, '/digest', { method: 'PUT', body: parts() });
    expect(await answer.text()).toBe(`6000000 ${sha256(Buffer.concat(Array.from({ length: 20 }, (_, i) => Buffer.alloc(300_000, i))))}`);
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('begun');
      throw new Error('the source broke');
    }
    await expect(box.fetch(8080, '/digest', { body: broken() })).rejects.toThrow('the source broke');
  });

  test('a server may answer before it has read the body', async () => {
    const answer = await box.fetch(8080, '/early', { body: randomBytes(8 * MIB) });
    expect([answer.status, await answer.text()]).toEqual([413, 'too much']);
  });
});

describe('failures have names', () => {
  test.each([
    ['nobody listens on a port', () => box.fetch(4444, '/'), 'PORT_CLOSED', /port 4444/],
    ['nor on a socket', () => box.fetch('/tmp/no.sock', '/'), 'PORT_CLOSED', /\/tmp\/no\.sock/],
    ['the server hangs up at once', () => box.fetch(9002, '/'), 'CONNECTION_BROKEN', /port 9002/],
    ['it speaks something else', () => box.fetch(9001, '/'), 'CONNECTION_BROKEN', /HTTP/],
    ['it says nothing in time', () => box.fetch(9003, '/', { timeoutMs: 300 }), 'DEADLINE_EXCEEDED', /300 ms/],
    ['it answers too late', () => box.fetch(8080, '/slow', { timeoutMs: 300 }), 'DEADLINE_EXCEEDED', /\/slow/],
    ['a port that is none', () => box.fetch(70_000, '/'), 'INVALID_ARGUMENT', /target/],
    ['a path that is none', () => box.fetch(8080, 'hello world'), 'INVALID_ARGUMENT', /path/],
    ['a header in two lines', () => box.fetch(8080, '/', { headers: [['x', 'a\r\nb: c']] }), 'INVALID_ARGUMENT', /headers/],
    ['the caller gives up', () => box.fetch(8080, '/slow', { signal: AbortSignal.timeout(200) }), 'CANCELLED', /abort/],
  ] as const)('%s', async (_, call, code, message) => {
    const error = await call().then(
      () => expect.unreachable('it was answered'),
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ name: 'DsecError', code });
    expect((error as Error).message).toMatch(message);
    expect((await box.fetch(8080, '/hello')).status).toBe(200);
  });

  test('a body that is cut off is an error of the body', async () => {
    const answer = await box.fetch(8080, '/cut');
    await expect(answer.text()).rejects.toMatchObject({ code: 'CONNECTION_BROKEN' });
  });

  test('the Edge is killed under a request: nobody sends it again', async () => {
    const slow = box.fetch(8080, '/never');
    slow.catch(() => {}); // awaited below
    const before = Number(await (await box.fetch(8080, '/hits')).text());
    expect(await (await box.fetch(8080, '/hit')).text()).toBe('counted');
    process.kill(host.platform.pids().edge ?? expect.unreachable('no Edge'), 'SIGKILL');
    await expect(slow).rejects.toMatchObject({ code: 'CONNECTION_LOST', fault: 'infra' });
    expect(Number(await (await box.fetch(8080, '/hits')).text())).toBe(before + 1);
  });
});

describe('raw connections', () => {
  test('carry bytes both ways, half-closed as the ends are', async () => {
    const connection = await box.connectPort(9000);
    const sent = randomBytes(3 * MIB);
    const echoed: Buffer[] = [];
    connection.on('data', (chunk: Buffer) => echoed.push(chunk));
    connection.end(sent);
    await once(connection, 'end');
    expect(sha256(Buffer.concat(echoed))).toBe(sha256(sent));
  });

  test('one byte at a time, and an answer to each', async () => {
    const connection = await box.connectPort(9000);
    for (const letter of 'abc') {
      connection.write(letter);
      expect(String((await once(connection, 'data'))[0])).toBe(letter);
    }
    connection.destroy();
  });

  test('of a closed port there is none', async () => {
    await expect(box.connectPort(4444)).rejects.toMatchObject({ code: 'PORT_CLOSED' });
  });
});

test('a sandbox cannot be reached through another, and ends its connections with itself', async () => {
  await using other = await dsec.runContainer({ image: 'with-node' });
  await expect(other.fetch(8080, '/hello')).rejects.toMatchObject({ code: 'PORT_CLOSED' });
  await startServer(other);
  const connection = await other.connectPort(9000);
  const closed = once(connection.resume(), 'close');
  connection.on('error', () => {});
  await other.stop();
  await closed;
  await expect(other.fetch(8080, '/hello')).rejects.toMatchObject({ code: 'SANDBOX_ENDED' });
});
