/** A socket whose queue is full is busy; one that nobody listens at is not there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectUnix, nobodyListens } from './unix-connect.ts';

/** Connections that a queue of one takes before it refuses, as the kernel counts them, and some that it refuses. */
const CALLERS = 8;

test('callers of a full queue wait until it has room, and every one is served', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-connect-'));
  const path = join(dir, 'socket');
  const script = `require('net').createServer((s) => s.end('served')).listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log('up'))`;
  const server = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    server.kill('SIGKILL');
    rmSync(dir, { recursive: true });
  });
  await once(server.stdout, 'data');
  server.kill('SIGSTOP');
  let connected = 0;
  const callers = Array.from({ length: CALLERS }, async () => {
    const socket = await connectUnix(path);
    connected += 1;
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    return bytes.toString();
  });
  await expect.poll(() => connected).toBeGreaterThan(0);
  expect(connected).toBeLessThan(CALLERS);
  server.kill('SIGCONT');
  expect(await Promise.all(callers)).toEqual(Array.from({ length: CALLERS }, () => 'served'));
});

test('where nobody listens the system’s own error comes at once', async () => {
  const thrown = await connectUnix(join(tmpdir(), 'nobody-listens-here')).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: 'ENOENT' });
  expect(nobodyListens(thrown)).toBe(true);
});

test.each(['EAGAIN', 'EACCES', 'EMFILE'])('%s says nothing of who listens', (code) => {
  expect(nobodyListens(Object.assign(new Error(code), { code }))).toBe(false);
});
