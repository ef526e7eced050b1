/** A TCP relay in front of a server, for the faults of a network: answers that never arrive, cut and silent connections. */
import { connect, createServer, type Socket } from 'node:net';

export type TcpProxy = {
  readonly url: string;
  readonly port: number;
  /** From now on what the server says is held back; what clients say still gets through. */
  holdAnswers(): void;
  /** From now on nothing passes, and nobody is told: as when a cable is pulled. New connections are taken and hang. */
  freeze(): void;
  /** New connections work again. Those that lost bytes stay dead without a word, as after a long cut. */
  thaw(): void;
  /** Ends every connection, drops what was held back, and lets new ones through. */
  cut(): void;
  close(): Promise<void>;
};

type Link = { readonly client: Socket; readonly server: Socket; isDead: boolean };

export const startTcpProxy = async (targetPort: number): Promise<TcpProxy> => {
  const links = new Set<Link>();
  let holdsAnswers = false;
  let isFrozen = false;

  const cut = (): void => {
    holdsAnswers = false;
    isFrozen = false;
    for (const { client, server } of links) {
      client.destroy();
      server.destroy();
    }
    links.clear();
  };
  const listener = createServer((client) => {
    const server = connect(targetPort, '127.0.0.1');
    const link: Link = { client, server, isDead: isFrozen };
    links.add(link);
    const end = (): void => {
      links.delete(link);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.setNoDelay(true).on('close', end).on('error', end);
    client.on('data', (bytes) => void (link.isDead || server.write(bytes)));
    server.on('data', (bytes) => void (link.isDead || holdsAnswers || client.write(bytes)));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  if (!address || typeof address !== 'object') throw new Error('the proxy has no port');
  return {
    url: `127.0.0.1:${address.port}`,
    port: address.port,
    holdAnswers: () => {
      holdsAnswers = true;
    },
    freeze: () => {
      isFrozen = true;
      for (const link of links) link.isDead = true;
    },
    thaw: () => {
      isFrozen = false;
    },
    cut,
    close: async () => {
      cut();
      await new Promise<void>((resolve) => listener.close(() => resolve()));
    },
  };
};
