/** Subscriptions that nobody follows any more, on a real nats-server. */
import { connect, errors } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type TestNatsServer, startNatsServer } from '#test/helpers/nats-server.ts';
import { NatsBus } from './nats-bus.ts';

const PATIENCE = { timeout: 10_000, interval: 20 };

let server: TestNatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server.stop());

test('hand on nothing from the moment they end, and the server hears of it: by itself and with a request', async () => {
  const bus = new NatsBus(await connect({ servers: server.url }), undefined);
  const other = await connect({ servers: server.url });
  other.subscribe('echo', { callback: (_, message) => void message.respond(message.data) });
  await other.flush();
  const ask = () => bus.request('echo', new Uint8Array(), 5_000);
  const isTold = (subject: string, timeout = 200): Promise<boolean> =>
    other.request(subject, new Uint8Array(), { timeout }).then(
      () => false,
      (thrown: unknown) => thrown instanceof errors.RequestError && thrown.isNoResponders(),
    );

  const seen: string[] = [];
  const never = () => expect.fail('it may be followed');
  const endA = bus.subscribe('news.a', ({ subject }) => void seen.push(subject), never);
  bus.subscribe('news.b', ({ subject }) => void seen.push(subject), never);
  await ask(); // the server has both
  endA();
  other.publish('news.a', 'x');
  other.publish('news.b', 'x');
  await vi.waitFor(() => expect(seen).toEqual(['news.b']), PATIENCE);
  await vi.waitFor(async () => expect(await isTold('news.a')).toBe(true), PATIENCE);

  const endC = bus.subscribe('news.c', () => {}, never);
  endC();
  await ask();
  await ask(); // sent behind what ended it
  expect(await isTold('news.c', 10_000)).toBe(true);
  await bus.close();
  await other.close();
});

test('a closed bus has nothing left to tell', async () => {
  const bus = new NatsBus(await connect({ servers: server.url }), undefined);
  const end = bus.subscribe(
    'news.d',
    () => {},
    () => {},
  );
  await bus.close();
  expect(end).not.toThrow();
});
