/** When what handlers say leaves, and what is dropped. */
import type { NatsConnection } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Acknowledgements } from './acknowledgements.ts';
import type { ConnectionWatch } from './connection.ts';
import { JETSTREAM_LIMITS } from './limits.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const open = () => {
  const sent: string[] = [];
  const gone: string[] = [];
  const watch = { isConnected: true };
  let onRequest = (): void => {};
  const acknowledgements = new Acknowledgements(
    { publish: (subject: string, said: string) => void sent.push(`${subject} ${said}`) } as unknown as NatsConnection,
    watch as ConnectionWatch,
    {
      onRequest: (listener) => {
        onRequest = listener;
      },
    },
  );
  const say = (id: string): void => void acknowledgements.say(() => id, '+ACK').then(() => gone.push(id));
  return { sent, gone, watch, acknowledgements, say, request: () => onRequest() };
};

test('leave with the next request, each once, in their order', async () => {
  const { sent, gone, say, request } = open();
  say('a');
  say('b');
  expect(sent).toEqual([]);
  request();
  request();
  expect(sent).toEqual(['a +ACK', 'b +ACK']);
  await vi.runAllTimersAsync();
  expect(sent).toHaveLength(2);
  expect(gone).toEqual(['a', 'b']);
});

test('leave by themselves when nothing is sent', async () => {
  const { sent, gone, say } = open();
  say('a');
  await vi.advanceTimersByTimeAsync(JETSTREAM_LIMITS.ackLingerMs - 1);
  say('b');
  expect(sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent).toEqual(['a +ACK', 'b +ACK']);
  expect(gone).toEqual(['a', 'b']);
});

test('are dropped while the connection is down: their deliveries come again', async () => {
  const { sent, gone, watch, say } = open();
  say('a');
  watch.isConnected = false;
  await vi.runAllTimersAsync();
  watch.isConnected = true;
  say('b');
  await vi.runAllTimersAsync();
  expect(sent).toEqual(['b +ACK']);
  expect(gone).toEqual(['a', 'b']);
});

test('a redelivery that comes before they leave says where they go', async () => {
  const { sent, acknowledgements } = open();
  let address = 'first';
  void acknowledgements.say(() => address, '+ACK');
  address = 'second';
  await vi.runAllTimersAsync();
  expect(sent).toEqual(['second +ACK']);
});
