import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import type { EventLog, Tail } from '#actors/ports/event-log.ts';
import { ManualClock, MemoryEventLog } from '#adapters/memory/mod.ts';
import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { anAddress, anAppend } from '#test/helpers/commits.ts';
import { memoryLogFactory } from '#test/helpers/memory-log.ts';
import { SharedTails } from './shared-tails.ts';

const SHARD = '0' as Shard;
const PATIENCE = { timeout: 20_000, interval: 5 };

eventLogContract(
  'shared tails, beside another follower',
  memoryLogFactory((log, shard) => {
    const shared = new SharedTails();
    void shared.of(log).tail(shard, 1, () => {});
    return shared.of(log);
  }),
);

describe('tails of one process', () => {
  let log: MemoryEventLog;
  let shared: SharedTails;
  /** Tails that are open at the log itself. */
  let readings: number;
  let opened: Tail[];
  beforeEach(() => {
    log = new MemoryEventLog({ shards: [SHARD], clock: new ManualClock(1_700_000_000_000) });
    shared = new SharedTails();
    readings = 0;
    opened = [];
  });
  afterEach(() => Promise.all(opened.map((tail) => tail.close())));

  /** A role's own way to the log. */
  const role = (): EventLog =>
    shared.of(
      Object.assign(Object.create(log) as EventLog, {
        append: log.append.bind(log),
        bounds: log.bounds.bind(log),
        tail: async (...args: Parameters<EventLog['tail']>) => {
          const tail = await log.tail(...args);
          readings += 1;
          return {
            close: () => {
              readings -= 1;
              return tail.close();
            },
          };
        },
      }),
    );
  const store = async (n: number): Promise<void> => {
    const outcome = await log.append(anAppend(anAddress(SHARD, `sb-${n}`), 1, 0));
    if (outcome.outcome !== 'applied') throw new Error(JSON.stringify(outcome));
  };
  const follow = async (fromSequence: number, handler: (sequence: number) => void | Promise<void> = () => {}) => {
    const heard: number[] = [];
    const tail = await role().tail(SHARD, fromSequence, async ({ sequence }) => {
      await handler(sequence);
      heard.push(sequence);
    });
    opened.push(tail);
    return { heard, tail };
  };
  const eventually = (condition: () => void): Promise<void> => vi.waitFor(condition, PATIENCE);

  test('read each commit once for all of them', async () => {
    const first = await follow(1);
    const second = await follow(1);
    for (let n = 1; n <= 20; n += 1) await store(n);
    await eventually(() => expect([first.heard.length, second.heard.length]).toEqual([20, 20]));
    expect(second.heard).toEqual(first.heard);
    expect(readings).toBe(1);
  });

  test('one that wants to begin later is told nothing from before that', async () => {
    for (let n = 1; n <= 3; n += 1) await store(n);
    const first = await follow(1);
    const second = await follow(4);
    await store(4);
    await eventually(() => expect([first.heard, second.heard]).toEqual([[1, 2, 3, 4], [4]]));
    expect(readings).toBe(1);
  });

  test('one that begins further back reads alone, and with the others once it has caught up', async () => {
    for (let n = 1; n <= 10; n += 1) await store(n);
    const first = await follow(1);
    await eventually(() => expect(first.heard).toHaveLength(10));
    const second = await follow(3);
    await eventually(() => expect(second.heard).toEqual([3, 4, 5, 6, 7, 8, 9, 10]));
    await eventually(() => expect(readings).toBe(1));
    for (let n = 11; n <= 15; n += 1) await store(n);
    await eventually(() => expect([first.heard.length, second.heard.length]).toEqual([15, 13]));
    expect(second.heard.at(-1)).toBe(15);
    expect(readings).toBe(1);
  });

  test('one whose handler throws holds up nobody, is offered the same again, and comes back', async () => {
    let isBroken = true;
    let tries = 0;
    const first = await follow(1);
    const second = await follow(1, (sequence) => {
      if (sequence !== 3 || !isBroken) return;
      tries += 1;
      throw new Error('disk full');
    });
    for (let n = 1; n <= 5; n += 1) await store(n);
    await eventually(() => expect(first.heard).toEqual([1, 2, 3, 4, 5]));
    await eventually(() => expect(tries).toBeGreaterThan(1));
    expect(second.heard).toEqual([1, 2]);
    isBroken = false;
    await store(6); // wakes the tail, whose clock stands still in this test
    await eventually(() => expect(second.heard).toEqual([1, 2, 3, 4, 5, 6]));
    await eventually(() => expect(readings).toBe(1));
    expect(first.heard).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('the end of one is not the end of the other, and the end of the last ends the reading', async () => {
    const first = await follow(1);
    const second = await follow(1);
    await store(1);
    await eventually(() => expect(second.heard).toEqual([1]));
    await first.tail.close();
    await store(2);
    await eventually(() => expect(second.heard).toEqual([1, 2]));
    expect([first.heard, readings]).toEqual([[1], 1]);
    await second.tail.close();
    expect(readings).toBe(0);
    const third = await follow(1);
    await eventually(() => expect(third.heard).toEqual([1, 2]));
  });

  test('its end waits for the handler that runs', async () => {
    let release: (() => void) | undefined;
    await follow(1);
    const handler = (): Promise<void> =>
      new Promise((resolve) => {
        release = resolve;
      });
    const slow = await follow(1, handler);
    await store(1);
    await eventually(() => expect(release).toBeDefined());
    let isClosed = false;
    const closing = slow.tail.close().then(() => {
      isClosed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isClosed).toBe(false);
    release?.();
    await closing;
    expect(slow.heard).toEqual([1]);
  });

  test('a shard that there is not is told to whoever asks for it', async () => {
    await expect(role().tail('9' as Shard, 1, () => {})).rejects.toThrow();
    await expect(role().tail('9' as Shard, 1, () => {})).rejects.toThrow();
  });
});
