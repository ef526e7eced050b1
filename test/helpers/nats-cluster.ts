/** Three real nats-servers that form one JetStream cluster on loopback. */
import { freePort } from '#infra/nats/ports.ts';
import { startNatsServer, type TestNatsServer } from '#test/helpers/nats-server.ts';

export type TestNatsCluster = {
  readonly urls: string[];
  pids(): number[];
  /** Server by the name that stream information calls it. */
  serverNamed(name: string): TestNatsServer;
  stop(): Promise<void>;
};

const SIZE = 3;

export const startNatsCluster = async (): Promise<TestNatsCluster> => {
  const ports = await Promise.all(Array.from({ length: SIZE }, () => freePort()));
  const routes = ports.map((port) => `"nats-route://127.0.0.1:${port}"`).join(', ');
  const servers = new Map<string, TestNatsServer>();
  for (const [i, port] of ports.entries()) {
    const name = `server-${i}`;
    servers.set(name, await startNatsServer(`server_name: ${name}\ncluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }`));
  }
  return {
    urls: [...servers.values()].map(({ url }) => url),
    pids: () => [...servers.values()].map(({ pid }) => pid),
    serverNamed: (name) => {
      const server = servers.get(name);
      if (!server) throw new Error(`no server is named ${name}`);
      return server;
    },
    stop: async () => {
      await Promise.all([...servers.values()].map((server) => server.stop()));
    },
  };
};
