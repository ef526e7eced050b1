import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { freePort, isFreePort } from './ports.ts';

const listen = (port: number) =>
  new Promise<{ close(): void }>((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });

test('a port that no connection is given by the kernel, and that can be listened on', async () => {
  const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number);
  for (let n = 0; n < 20; n += 1) {
    const port = await freePort();
    expect(port).toBeLessThan(first as number);
    (await listen(port)).close();
  }
});

test('one that somebody listens on is not free', async () => {
  const port = await freePort();
  const server = await listen(port);
  expect(await isFreePort(port)).toBe(false);
  server.close();
});
