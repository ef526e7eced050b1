/**
 * A real nats-server with a faulty network in front of it, and the JetStream adapter connected through that network.
 * Everything that a test does to the server itself goes around the faults.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { busConnectionOptions, type BusReport, connectJetStream, type JetStreamBus, type JetStreamOptions } from '#adapters/jetstream/mod.ts';
import { startNatsServer, type TestNatsServer } from '#test/helpers/nats-server.ts';
import { startTcpProxy, type TcpProxy } from '#test/helpers/tcp-proxy.ts';

const POLL_MS = 10;

export type BusUnderTest = {
  readonly server: TestNatsServer;
  readonly proxy: TcpProxy;
  readonly serverUrl: string;
  readonly admin: BusAdmin;
  /** A connection of its own through the faulty network. `reports` is what the adapter had to say. */
  connect(options?: JetStreamOptions): Promise<{ nc: NatsConnection; jetstream: JetStreamBus; reports: BusReport[]; close(): Promise<void> }>;
  /** The next message that the stream stores is stored, and its publisher's connection breaks before it learns that. */
  loseNextAnswer(stream: string): Promise<void>;
  /** SIGKILL, then `during`, then the same server again; returns when `jetstream` is connected again. */
  outage(jetstream: JetStreamBus, during: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
};

export class BusAdmin {
  readonly #server: TestNatsServer;

  constructor(server: TestNatsServer) {
    this.#server = server;
  }

  async use<T>(work: (jsm: JetStreamManager, nc: NatsConnection) => Promise<T>): Promise<T> {
    const nc = await connect({ servers: this.#server.url });
    try {
      return await work(await jetstreamManager(nc, { checkAPI: false }), nc);
    } finally {
      await nc.close();
    }
  }
  /**
   * Takes everything out of a stream, consumers too. Deleting the stream would be simpler, but nats-server 2.15 brings a
   * stream's messages back when one of the same name is made right after its deletion.
   */
  async empty(stream: string): Promise<void> {
    await this.use(async (jsm) => {
      await jsm.streams.purge(stream);
      for await (const { name } of jsm.consumers.list(stream)) await jsm.consumers.delete(stream, name);
    });
  }
  lastSequence(stream: string): Promise<number> {
    return this.use(async (jsm) => (await jsm.streams.info(stream)).state.last_seq);
  }
  async store(subject: string, data: Uint8Array): Promise<void> {
    await this.use(async (_, nc) => void (await nc.request(subject, data)));
  }
}

export const startBusUnderTest = async (): Promise<BusUnderTest> => {
  const server = await startNatsServer();
  const proxy = await startTcpProxy(server.port);
  const admin = new BusAdmin(server);
  return {
    server,
    proxy,
    serverUrl: server.url,
    admin,
    connect: async (options = {}) => {
      const nc = await connect({ ...busConnectionOptions(proxy.url, 'test'), reconnectTimeWait: 50, reconnectJitter: 10 });
      const reports: BusReport[] = [];
      const jetstream = connectJetStream(nc, { report: (line) => void reports.push(line), ...options });
      return {
        nc,
        jetstream,
        reports,
        close: async () => {
          jetstream.close();
          await nc.close();
        },
      };
    },
    loseNextAnswer: async (stream) => {
      const before = await admin.lastSequence(stream);
      proxy.holdAnswers();
      void (async () => {
        while ((await admin.lastSequence(stream)) === before) await delay(POLL_MS);
        proxy.cut();
      })();
    },
    outage: async (jetstream, during) => {
      await server.kill('SIGKILL');
      while (jetstream.isConnected) await delay(POLL_MS);
      await during();
      await server.restart();
      while (!jetstream.isConnected) await delay(POLL_MS);
    },
    stop: async () => {
      await proxy.close();
      await server.stop();
    },
  };
};
