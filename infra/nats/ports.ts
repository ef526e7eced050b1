/** Ports for servers that keep theirs over restarts. */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const LOWEST = 10_000;
const TRIES = 64;

/** Whether nobody listens on the port, as far as one can know before listening. */
export const isFreePort = (port: number, host = '127.0.0.1'): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });

/**
 * A port below those that the kernel hands out to whoever connects: one of those may belong to a stranger's connection when the
 * server that is to listen on it comes back.
 */
export const freePort = async (host = '127.0.0.1'): Promise<number> => {
  const end = firstEphemeralPort();
  for (let n = 0; n < TRIES && end > LOWEST; n += 1) {
    const port = randomInt(LOWEST, end);
    if (await isFreePort(port, host)) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${end} on ${host}; end what listens there, or name a port in the configuration`);
};

const firstEphemeralPort = (): number => {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10) || 32_768;
  } catch {
    return 32_768;
  }
};
