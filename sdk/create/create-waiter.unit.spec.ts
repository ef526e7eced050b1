/** Races between the answer of a create, its commits, and the questions that catch up with them, each in a written order. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import type { ClientKey, EdgeName } from '#bus/ids.ts';
import { sandboxIdFor } from '#bus/ids.ts';
import type { SandboxStatus } from '#bus/sandbox/state.ts';
import { Session } from '../session.ts';
import { commitOf, EDGE, type FakeItem, PROJECT, requestIdOf, requestState, sandboxState } from '../testing/records.ts';
import { ScriptedBus } from '../testing/scripted-bus.ts';
import type { Assembly } from './assembly.ts';
import { createAndWait } from './create-waiter.ts';

const KEY = 'k' as ClientKey;
const id = requestIdOf(KEY);
const OTHER = 'node-2' as EdgeName;
let bus: ScriptedBus;
let session: Session;

beforeEach(() => {
  bus = new ScriptedBus();
  session = new Session(bus, PROJECT);
  bus.answers.create = () => ({ requestId: id, bodyHash: 'hash' });
});

afterEach(() => {
  vi.useRealTimers();
});

const create = (count = 1, timeoutMs = 5_000, mayExist = false): Promise<Assembly> =>
  createAndWait(session, { key: KEY, count, spec: { image: 'debian' }, mayExist }, { timeoutMs, deadlineAt: Date.now() + timeoutMs });

const assigned = (version: number, items: readonly FakeItem[] = [{ attempt: 0, edge: EDGE }]) =>
  commitOf('request', id, version, requestState(KEY, items), 'SandboxesAssigned');
const sandbox = (version: number, status: SandboxStatus, attempt = 0, edge = EDGE, index = 0) => {
  const state = sandboxState(id, index, attempt, status, { edge });
  return commitOf('sandbox', state.id, version, state, 'SandboxStarted');
};
const viewOf = (commit: ReturnType<typeof sandbox>) => ({ version: commit.version, streamSequence: commit.version, state: commit.state });
const requestAnswer = (commit: ReturnType<typeof assigned>) => () => ({ version: commit.version, streamSequence: commit.version, state: commit.state });
const outcomes = ({ items }: Assembly) => items.map(({ outcome }) => (outcome?.ok ? outcome.state.id : (outcome?.error.code ?? 'open')));
const RUNS = [sandboxIdFor(id, 0, 0, EDGE)];

describe('one sandbox', () => {
  test('followed from its assignment: nothing is asked', async () => {
    bus.answers.create = () => {
      setImmediate(() => {
        bus.publish(assigned(1));
        bus.publish(sandbox(1, 'starting'));
        bus.publish(sandbox(2, 'running'));
      });
      return { requestId: id, bodyHash: 'hash' };
    };
    expect(outcomes(await create())).toEqual(RUNS);
    expect(bus.asked).toEqual(['info', 'create']);
  });

  test('its node guessed from the last one: news from before the assignment counts', async () => {
    session.edgeHint = EDGE;
    bus.answers.create = () => {
      bus.publish(sandbox(2, 'running'));
      return { requestId: id, bodyHash: 'hash' };
    };
    expect(outcomes(await create())).toEqual(RUNS);
    expect(bus.asked).toEqual(['info', 'create']);
  });

  test('started before anybody listened: the first question finds it', async () => {
    bus.answers.create = () => {
      bus.publish(sandbox(2, 'running')); // no assignment yet, so nobody follows it
      bus.publish(assigned(1));
      return { requestId: id, bodyHash: 'hash' };
    };
    bus.answers.request = requestAnswer(assigned(1));
    bus.answers.get = () => ({ sandboxes: [viewOf(sandbox(2, 'running'))] });
    expect(outcomes(await create())).toEqual(RUNS);
  });

  test('an answer that is older than the news changes nothing', async () => {
    bus.answers.create = () => {
      bus.publish(assigned(2, [{ attempt: 1, edge: OTHER }]));
      return { requestId: id, bodyHash: 'hash' };
    };
    bus.answers.request = requestAnswer(assigned(1));
    bus.answers.get = ({ ids }) => {
      setImmediate(() => bus.publish(sandbox(2, 'running', 1, OTHER)));
      return { sandboxes: (ids as string[]).map(() => viewOf(sandbox(1, 'starting', 1, OTHER))) };
    };
    expect(outcomes(await create())).toEqual([sandboxIdFor(id, 0, 1, OTHER)]);
  });

  test('moved to another node while its first one is asked about', async () => {
    bus.answers.create = () => {
      bus.publish(assigned(1));
      return { requestId: id, bodyHash: 'hash' };
    };
    bus.answers.request = requestAnswer(assigned(1));
    bus.answers.get = () => {
      bus.publish(assigned(2, [{ attempt: 1, edge: OTHER }]));
      bus.publish(sandbox(2, 'running', 1, OTHER));
      return { sandboxes: [null] };
    };
    expect(outcomes(await create())).toEqual([sandboxIdFor(id, 0, 1, OTHER)]);
  });

  test('news that comes while a question hangs ends the wait', async () => {
    bus.answers.request = () => {
      bus.publish(assigned(1));
      bus.publish(sandbox(2, 'running'));
      return new Promise(() => {});
    };
    expect(outcomes(await create())).toEqual(RUNS);
  });

  test('not placed when the time is over: open, and no question outlives the call', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
    bus.answers.request = () => {
      throw DsecError.of('REQUEST_NOT_FOUND', 'not placed yet');
    };
    const unplaced = create(1, 100);
    await vi.advanceTimersByTimeAsync(100);
    expect(outcomes(await unplaced)).toEqual(['open']);
    bus.answers.request = requestAnswer(assigned(1));
    bus.answers.get = () => ({ sandboxes: [null] });
    const undecided = create(1, 5_000);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(outcomes(await undecided)).toEqual(['open']);
    const asked = bus.asked.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(bus.asked.length).toBe(asked);
  });

  test('a reconnect is followed by a question at once', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
    bus.answers.request = requestAnswer(assigned(1));
    let up = false;
    bus.answers.get = () => ({ sandboxes: [viewOf(sandbox(up ? 2 : 1, up ? 'running' : 'starting'))] });
    const created = create(1, 60_000);
    await vi.advanceTimersByTimeAsync(900);
    up = true; // and time stands still: no other question can come
    bus.reconnect();
    expect(outcomes(await created)).toEqual(RUNS);
  });

  test('no right to listen is told', async () => {
    bus.answers.create = () => {
      bus.refuseSubscriptions();
      return { requestId: id, bodyHash: 'hash' };
    };
    await expect(create()).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  test('another request than expected: shards are asked for anew, the answered one is followed', async () => {
    const other = requestIdOf('other');
    bus.answers.create = () => ({ requestId: other, bodyHash: 'hash' });
    const state = sandboxState(other, 0, 0, 'running');
    bus.answers.request = () => ({ version: 1, streamSequence: 1, state: { ...requestState('other', [{ attempt: 0, edge: EDGE }]) } });
    bus.answers.get = () => ({ sandboxes: [{ version: 2, streamSequence: 2, state }] });
    expect(outcomes(await create())).toEqual([state.id]);
    expect(bus.asked.filter((verb) => verb === 'info')).toHaveLength(2);
  });
});

describe('a chunk of 256', () => {
  const items = Array.from({ length: 256 }, () => ({ attempt: 0, edge: EDGE }));
  const indexOf = new Map<string, number>(items.map((_, index) => [sandboxIdFor(id, index, 0, EDGE), index]));

  test('is followed by one subscription per node, and none of them stays open', async () => {
    let most = 0;
    bus.answers.create = () => {
      setImmediate(() => {
        bus.publish(assigned(1, items));
        most = bus.subscriptionCount;
        for (let index = 0; index < 256; index += 1) bus.publish(sandbox(2, 'running', 0, EDGE, index));
      });
      return { requestId: id, bodyHash: 'hash' };
    };
    expect((await create(256)).done).toBe(true);
    expect(most).toBe(3); // the request's, the node's, and losses
    expect(bus.subscriptionCount).toBe(1); // losses: one per client
    expect(bus.asked).toEqual(['info', 'create']);
  });

  test('only what is quiet is asked for, and pages shrink when answers are too large', async () => {
    bus.answers.create = () => {
      setImmediate(() => {
        bus.publish(assigned(1, items));
        for (let index = 0; index < 200; index += 1) bus.publish(sandbox(2, 'running', 0, EDGE, index));
      });
      return { requestId: id, bodyHash: 'hash' };
    };
    bus.answers.request = requestAnswer(assigned(1, items));
    const sizes: number[] = [];
    bus.answers.get = ({ ids }) => {
      const asked = ids as string[];
      sizes.push(asked.length);
      if (asked.length > 20) throw DsecError.of('PAYLOAD_TOO_LARGE', 'large specs');
      return { sandboxes: asked.map((one) => viewOf(sandbox(2, 'running', 0, EDGE, indexOf.get(one)))) };
    };
    expect((await create(256)).done).toBe(true);
    expect(sizes).toEqual([56, 16, 16, 16, 8]);
  });
});
