import { describe, expect, test } from 'vitest';
import { wireError } from '#bus/errors.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { AppendRequest, StoredCommit } from '../ports/event-log.ts';
import { type Effect, fold } from './definition.ts';
import { ActorHost, type CommandMeta, type HostInput, type HostOutput } from './host.ts';
import { KERNEL_LIMITS } from './limits.ts';
import { type Add, type Added, type Counter, counterAddress, counterDefinition } from './testing/counter.ts';
import { ModelLog } from './testing/model-log.ts';
import { Scenario } from './testing/scenario.ts';

const address = counterAddress();
const add = (n: number, key?: string): Add => (key === undefined ? { type: 'Add', n } : { type: 'Add', n, key });
const meta = (commandId: string, over: Partial<CommandMeta> = {}): CommandMeta => ({
  commandId,
  correlationId: 'cor',
  principal: 'tester',
  at: 1_000 as TimestampMs,
  ...over,
});
const conflict = { outcome: 'not_applied', reason: 'conflict', error: wireError('INTERNAL', 'another writer was first') } as const;

/** The host with its inputs given by hand. */
class Bench {
  readonly host = new ActorHost<Counter, Add, Added, Effect>(counterDefinition);
  #token = 0;

  command(command: Add, commandMeta = meta(`c${this.#token + 1}`), to: ActorAddress = address) {
    this.#token += 1;
    return this.step({ type: 'command', address: to, command, meta: commandMeta, token: this.#token });
  }
  step(input: HostInput<Add>): HostOutput<Counter, Effect>[] {
    return this.host.step(input);
  }
  loaded(stored: StoredCommit | null) {
    return this.step({ type: 'loaded', address, stored });
  }
  appended(outcome: Extract<HostInput<Add>, { type: 'appended' }>['outcome']) {
    return this.step({ type: 'appended', address, outcome });
  }
}
const appendOf = (outputs: readonly HostOutput<Counter, Effect>[]): AppendRequest => {
  const output = outputs.find((o) => o.type === 'append');
  if (output?.type !== 'append') throw new Error(`no append among ${outputs.map((o) => o.type).join(', ')}`);
  return output.request;
};
const stored = (request: AppendRequest, sequence: number): StoredCommit => ({ address: request.address, sequence, commit: request.commit });
const typesOf = (outputs: readonly { type: string }[]) => outputs.map((o) => o.type);

describe('INV-DUR: nothing leaves before the commit is durable', () => {
  test('load, append, and only then reply and effects', () => {
    const bench = new Bench();
    expect(bench.command(add(5))).toEqual([{ type: 'load', address }]);
    const request = appendOf(bench.loaded(null));
    expect(request).toMatchObject({ expectedSequence: 0, commit: { version: 1, commandId: 'c1', events: [{ type: 'Added', n: 5 }], state: { total: 5 } } });
    expect(bench.host.peek(address)).toBeUndefined();
    expect(bench.appended({ outcome: 'applied', sequence: 9 })).toMatchObject([
      { type: 'reply', token: 1, result: { ok: true, decision: 'accepted', version: 1 } },
      { type: 'adopted', state: { total: 5 }, stored: { sequence: 9 }, effects: [{ key: 'show:5' }] },
    ]);
    expect(bench.host.peek(address)).toMatchObject({ state: { total: 5 }, stored: { sequence: 9 } });
  });

  test('what waits in the mailbox is decided on the new state, one at a time', () => {
    const bench = new Bench();
    bench.command(add(5));
    bench.command(add(2));
    bench.command(add(0));
    bench.loaded(null);
    const next = bench.appended({ outcome: 'applied', sequence: 1 });
    expect(typesOf(next)).toEqual(['reply', 'adopted', 'append']);
    expect(appendOf(next)).toMatchObject({ expectedSequence: 1, commit: { version: 2, state: { total: 7 } } });
    expect(bench.appended({ outcome: 'applied', sequence: 2 })).toMatchObject([
      { type: 'reply', token: 2 },
      { type: 'adopted' },
      { type: 'reply', token: 3, result: { decision: 'ignored', reason: 'nothing to add', version: 2 } },
    ]);
  });

  test('a commit carries who asked and what caused it', () => {
    const bench = new Bench();
    bench.command(add(5), meta('c1', { correlationId: 'job-1', causationId: 'c0', principal: 'ann', traceparent: '00-ab-cd-01', sequence: 7 }));
    const { commit } = appendOf(bench.loaded(null));
    expect(commit).toMatchObject({
      correlationId: 'job-1',
      causationId: 'c0',
      principal: 'ann',
      traceparent: '00-ab-cd-01',
      lastCommandSequence: 7,
      kind: 'job',
      actorId: 'counter-1',
    });
  });
});

describe('the three outcomes', () => {
  test('unknown repeats the very same request until it is known', () => {
    const bench = new Bench();
    bench.command(add(5));
    const first = appendOf(bench.loaded(null));
    for (const repetition of [1, 2, 3]) {
      const [again] = bench.appended({ outcome: 'unknown', error: wireError('BUS_UNAVAILABLE', 'no answer') });
      expect(again).toEqual({ type: 'append', request: first, repetition });
    }
    expect(typesOf(bench.appended({ outcome: 'applied', sequence: 1 }))).toEqual(['reply', 'adopted']);
  });

  test.each(['lostAnswer', 'lostRequest'] as const)('%s: the command counts once', (fault) => {
    const scenario = new Scenario(counterDefinition, address).run([
      { command: add(5), at: 1, faults: [fault, fault] },
      { command: add(2), at: 2 },
    ]);
    expect(scenario.stored).toEqual({ total: 7, keys: [] });
    expect(scenario.log.history(address).map((s) => s.commit.version)).toEqual([1, 2]);
  });

  test('a conflict that turns out to be our own commit is a success', () => {
    const bench = new Bench();
    bench.command(add(5));
    const request = appendOf(bench.loaded(null));
    bench.appended({ outcome: 'unknown', error: wireError('BUS_UNAVAILABLE', 'no answer') });
    expect(bench.appended(conflict)).toEqual([{ type: 'load', address }]);
    expect(bench.loaded(stored(request, 4))).toMatchObject([
      { type: 'reply', token: 1, result: { ok: true, decision: 'accepted', version: 1 } },
      { type: 'adopted', state: { total: 5 }, stored: { sequence: 4 } },
    ]);
    expect(bench.host.evict(address)).toBe(true);
  });

  test('a conflict with another writer is decided again on what that one wrote', () => {
    const [other, bench] = [new Bench(), new Bench()];
    other.command(add(40, 'x'), meta('theirs'));
    const theirs = stored(appendOf(other.loaded(null)), 4);
    bench.command(add(2));
    bench.loaded(null);
    bench.appended(conflict);
    const next = bench.loaded(theirs);
    expect(appendOf(next)).toMatchObject({ expectedSequence: 4, commit: { version: 2, state: { total: 42 } } });
    expect(typesOf(bench.appended({ outcome: 'applied', sequence: 5 }))).toEqual(['reply', 'adopted']);
  });

  test('after too many conflicts the caller is told, and the next command is served', () => {
    const bench = new Bench();
    bench.command(add(2));
    bench.command(add(3));
    const other = new Bench();
    other.command(add(1));
    const theirs = appendOf(other.loaded(null));
    let outputs = bench.loaded(null);
    for (let i = 1; i <= KERNEL_LIMITS.conflictRetries; i += 1) {
      expect(typesOf(bench.appended(conflict))).toEqual(['load']);
      outputs = bench.loaded(stored({ ...theirs, commit: { ...theirs.commit, commandId: `theirs-${i}` } }, i));
    }
    expect(outputs).toMatchObject([{ type: 'reply', token: 1, result: { ok: false, error: conflict.error } }, { type: 'adopted' }, { type: 'append' }]);
  });

  test('what the log will never take is the caller’s answer', () => {
    const bench = new Bench();
    bench.command(add(5));
    bench.command(add(1));
    bench.loaded(null);
    const error = wireError('PAYLOAD_TOO_LARGE', 'commit has 2000000 bytes');
    expect(bench.appended({ outcome: 'not_applied', reason: 'rejected', error })).toMatchObject([
      { type: 'reply', token: 1, result: { ok: false, error } },
      { type: 'append' },
    ]);
  });

  test('two decisions of one command never share a message id unless they are equal', () => {
    const idOf = (n: number, at: number) => {
      const bench = new Bench();
      bench.command(add(n), meta('c1', { at: at as TimestampMs }));
      return appendOf(bench.loaded(null)).messageId;
    };
    expect(idOf(5, 1)).toBe(idOf(5, 1));
    expect(idOf(5, 1)).not.toBe(idOf(6, 1));
    expect(idOf(5, 1)).not.toBe(idOf(5, 2));
    expect(idOf(5, 1)).toMatch(/^acme:/);
  });
});

describe('commands that come twice or late', () => {
  test('a redelivery is answered with its own commit, however many came after it', () => {
    const scenario = new Scenario(counterDefinition, address).run([
      { command: add(1), at: 1, meta: { commandId: 'a', sequence: 10 } },
      { command: add(2), at: 2, meta: { commandId: 'b', sequence: 11 } },
      { command: add(2), at: 3, meta: { commandId: 'b', sequence: 11 } },
      { command: add(1), at: 3, meta: { commandId: 'a', sequence: 10 } },
      { command: add(4), at: 4, meta: { commandId: 'c' } },
      { command: add(2), at: 5, meta: { commandId: 'b', sequence: 11 } },
    ]);
    expect(scenario.results.map((r) => (r.ok ? `${r.decision} ${r.version}` : r.error.code))).toEqual([
      'accepted 1',
      'accepted 2',
      'accepted 2',
      'accepted 1',
      'accepted 3',
      'accepted 2',
    ]);
    expect(scenario.stored).toEqual({ total: 7, keys: [] });
  });

  test('one that was passed over, or lies too far back, is superseded and never obeyed out of order', () => {
    const later = Array.from({ length: KERNEL_LIMITS.recalledCommits }, (_, i) => ({ command: add(1), at: 3, meta: { commandId: `later-${i}` } }));
    const scenario = new Scenario(counterDefinition, address).run([
      { command: add(1), at: 1, meta: { commandId: 'a', sequence: 10 } },
      { command: add(2), at: 2, meta: { commandId: 'c', sequence: 12 } },
      { command: add(3), at: 2, meta: { commandId: 'b', sequence: 11 } },
      ...later,
      { command: add(2), at: 4, meta: { commandId: 'c', sequence: 12 } },
      { command: add(1), at: 4, meta: { commandId: 'a', sequence: 10 } },
    ]);
    expect(scenario.results[2]).toMatchObject({ ok: false, error: { code: 'SUPERSEDED', details: { sequence: 11, lastCommandSequence: 12 } } });
    expect(scenario.results.at(-2)).toMatchObject({ decision: 'accepted', version: 2 });
    expect(scenario.results.at(-1)).toMatchObject({ error: { code: 'SUPERSEDED' } });
    expect(scenario.stored?.total).toBe(3 + later.length);
  });

  test('while the log is read back the others wait, and a log that is away is the answer', () => {
    const bench = new Bench();
    bench.command(add(1), meta('a', { sequence: 10 }));
    bench.loaded(null);
    bench.appended({ outcome: 'applied', sequence: 1 });
    bench.command(add(1), meta('b', { sequence: 11 }));
    bench.appended({ outcome: 'applied', sequence: 2 });
    expect(bench.command(add(1), meta('a', { sequence: 10 }))).toEqual([{ type: 'recall', address, afterVersion: 0, limit: KERNEL_LIMITS.recalledCommits }]);
    expect(bench.command(add(5), meta('c', { sequence: 12 }))).toEqual([]);
    expect(bench.loaded(null)).toEqual([]); // a late answer of an earlier load
    const error = wireError('BUS_UNAVAILABLE', 'no answer');
    expect(bench.step({ type: 'recallFailed', address, error })).toMatchObject([{ type: 'reply', token: 3, result: { ok: false, error } }, { type: 'append' }]);
    expect(bench.step({ type: 'recalled', address, commits: [] })).toEqual([]);
  });

  test('a full mailbox refuses the next, not the ones before', () => {
    const bench = new Bench();
    for (let i = 0; i < KERNEL_LIMITS.mailboxLength; i += 1) expect(typesOf(bench.command(add(1)))).toEqual(i === 0 ? ['load'] : []);
    expect(bench.command(add(1))).toMatchObject([{ type: 'reply', result: { ok: false, error: { code: 'OVERLOADED', retry: 'later' } } }]);
    expect(bench.command(add(1), meta('other'), counterAddress('counter-2'))).toMatchObject([{ type: 'load' }]);
  });
});

describe('loading', () => {
  const theirs = (sequence: number, total: number): StoredCommit => {
    const bench = new Bench();
    bench.command(add(total), meta(`at-${sequence}`));
    return stored(appendOf(bench.loaded(null)), sequence);
  };

  test('a log that is away is everybody’s answer, and the next command tries again', () => {
    const bench = new Bench();
    bench.command(add(1));
    bench.command(add(2));
    const error = wireError('BUS_UNAVAILABLE', 'no answer');
    expect(bench.step({ type: 'loadFailed', address, error })).toMatchObject([
      { type: 'reply', token: 1, result: { ok: false, error } },
      { type: 'reply', token: 2, result: { ok: false, error } },
    ]);
    expect(typesOf(bench.command(add(3)))).toEqual(['load']);
  });

  test.each([
    ['MALFORMED_MESSAGE', (s: StoredCommit): StoredCommit => ({ ...s, commit: { ...s.commit, state: { total: 'many' } } })],
    ['UNSUPPORTED_VERSION', (s: StoredCommit): StoredCommit => ({ ...s, commit: { ...s.commit, schema: 2 } })],
  ])('%s: a commit that cannot be read stops its own actor only', (code, spoil) => {
    const bench = new Bench();
    bench.command(add(1));
    bench.command(add(1), meta('x'), counterAddress('counter-2'));
    expect(bench.loaded(spoil(theirs(3, 5)))).toMatchObject([{ type: 'reply', token: 1, result: { ok: false, error: { code } } }]);
    expect(appendOf(bench.step({ type: 'loaded', address: counterAddress('counter-2'), stored: null })).commit.state).toEqual({ total: 1, keys: [] });
  });

  test('a commit found at start is adopted without being asked for, once', () => {
    const bench = new Bench();
    expect(bench.loaded(theirs(3, 5))).toMatchObject([{ type: 'adopted', state: { total: 5 }, effects: [{ key: 'show:5' }] }]);
    expect(bench.loaded(theirs(3, 5))).toEqual([]);
    expect(bench.loaded(theirs(2, 4))).toEqual([]);
    expect(bench.loaded(null)).toEqual([]);
    expect(bench.loaded(theirs(4, 6))).toMatchObject([{ type: 'adopted', state: { total: 6 } }]);
  });

  test('a late answer to a load changes nothing under an append', () => {
    const bench = new Bench();
    bench.command(add(1));
    bench.loaded(theirs(3, 5));
    expect(bench.loaded(theirs(3, 5))).toEqual([]);
    expect(bench.appended({ outcome: 'applied', sequence: 4 })).toMatchObject([{ type: 'reply' }, { type: 'adopted', state: { total: 6 } }]);
    expect(bench.appended({ outcome: 'applied', sequence: 4 })).toEqual([]);
  });

  test('an actor that never came to be leaves no trace in memory', () => {
    const bench = new Bench();
    bench.command(add(-1));
    expect(bench.loaded(null)).toMatchObject([{ type: 'reply', result: { ok: false, error: { code: 'INVALID_ARGUMENT' } } }]);
    expect(bench.host.size).toBe(0);
  });

  test('an actor whose tombstone still lies says so instead of beginning again', () => {
    const scenario = new Scenario(counterDefinition, address).run([{ command: add(1), at: 1 }]);
    scenario.log.forget(address);
    expect(scenario.host.evict(address)).toBe(true);
    expect(scenario.give({ command: add(1), at: 2 })).toMatchObject({ ok: false, error: { code: 'KEY_EXPIRED' } });
    expect(scenario.host.size).toBe(0);
  });

  test('a busy actor is not evicted', () => {
    const bench = new Bench();
    bench.command(add(1));
    expect(bench.host.evict(address)).toBe(false);
    bench.loaded(null);
    expect(bench.host.evict(address)).toBe(false);
    bench.appended({ outcome: 'applied', sequence: 1 });
    expect(bench.host.evict(address)).toBe(true);
    expect(bench.host.evict(address)).toBe(true);
    expect(typesOf(bench.command(add(1)))).toEqual(['load']);
  });
});

test('the model log keeps to its own promise: a repeated message id is stored once', () => {
  const log = new ModelLog();
  const bench = new Bench();
  bench.command(add(5));
  const request = appendOf(bench.loaded(null));
  expect(log.append(request)).toEqual(log.append(request));
  expect(log.history(address).length).toBe(1);
  expect(
    fold<Counter, Added>(
      counterDefinition,
      log.history(address).flatMap((s) => s.commit.events as unknown as Added[]),
    ),
  ).toEqual({ total: 5, keys: [] });
});

describe('birth: the first command of an actor that most likely does not exist', () => {
  const born = (bench: Bench, commandId = 'c1') => bench.step({ type: 'command', address, command: add(5), meta: meta(commandId), token: 1, birth: true });

  test('is decided and appended without a read', () => {
    const bench = new Bench();
    const outputs = born(bench);
    expect(typesOf(outputs)).toEqual(['append']);
    expect(appendOf(outputs)).toMatchObject({ expectedSequence: 0, commit: { version: 1, state: { total: 5 } } });
    expect(bench.appended({ outcome: 'applied', sequence: 3 })).toMatchObject([{ type: 'reply', token: 1, result: { ok: true } }, { type: 'adopted' }]);
  });

  test('of one that exists after all is decided again on what the log says', () => {
    const elsewhere = new Bench();
    const earlier = stored(appendOf(born(elsewhere, 'earlier')), 7);
    const bench = new Bench();
    born(bench);
    expect(bench.appended(conflict)).toEqual([{ type: 'load', address }]);
    expect(appendOf(bench.loaded(earlier))).toMatchObject({ expectedSequence: 7, commit: { version: 2, state: { total: 10 } } });
  });

  test('repeated after its answer was lost is found to be done', () => {
    const bench = new Bench();
    const request = appendOf(born(bench));
    bench.appended({ outcome: 'unknown', error: wireError('OUTCOME_UNKNOWN', 'no answer') });
    bench.appended(conflict);
    expect(bench.loaded(stored(request, 4))[0]).toMatchObject({ type: 'reply', token: 1, result: { ok: true, version: 1 } });
  });
});
