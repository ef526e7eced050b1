/**
 * The host under every order of answers: commands, loads and appends interleave at random, answers are lost, requests are
 * lost, actors are dropped, a second writer shares the log.
 *
 * INV-SEQ: versions of a log are 1, 2, 3, …  INV-REPLY: every command is answered once; an acceptance names a commit that
 * is in the log.  INV-ONCE: no acknowledged command is lost or doubled.  INV-REPLAY: folding the log gives its last state.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock, MemoryEventLog, type WriteFault } from '#adapters/memory/mod.ts';
import { wireError } from '#bus/errors.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { AppendOutcome, AppendRequest, StoredCommit } from '../ports/event-log.ts';
import { type Effect, fold } from './definition.ts';
import { ActorHost, type CommandResult, type HostInput, type HostOutput } from './host.ts';
import { type Add, type Added, type Counter, counterAddress, counterDefinition } from './testing/counter.ts';

const address = counterAddress();

/** `denied`: a broker that answers the repetition of a stored append with a conflict, as nats-server 2.15 does on one replica. */
type Fault = WriteFault | 'denied';
const conflict = { outcome: 'not_applied', reason: 'conflict', error: wireError('INTERNAL', 'wrong last sequence') } as const;

/** The memory log, losing or denying what the next write is told to. */
class FaultyLog {
  #fault: Fault = 'none';
  readonly log = new MemoryEventLog({ shards: [address.shard], clock: new ManualClock(1_000), fault: () => (this.#fault === 'denied' ? 'none' : this.#fault) });

  async append(request: AppendRequest, fault: Fault): Promise<AppendOutcome> {
    this.#fault = fault;
    const before = await this.log.last(address);
    const outcome = await this.log.append(request);
    const isRepetition = outcome.outcome === 'applied' && before !== null && outcome.sequence <= before.sequence;
    return fault === 'denied' && isRepetition ? conflict : outcome;
  }
}

/** One process: a host, and the I/O that it has asked for and that has not happened or not been answered yet. */
class Writer {
  readonly results = new Map<number, CommandResult[]>();
  readonly #faulty: FaultyLog;
  readonly #host = new ActorHost<Counter, Add, Added, Effect>(counterDefinition);
  readonly #wanted: Extract<HostOutput<Counter, Effect>, { type: 'load' | 'append' | 'recall' }>[] = [];
  readonly #answers: HostInput<Add>[] = [];

  constructor(faulty: FaultyLog) {
    this.#faulty = faulty;
  }

  /** `queued`: the command came from the queue at this place, and may come again. */
  command(token: number, command: Add, queued?: number): void {
    this.results.set(token, []);
    const commandId = queued === undefined ? `cmd-${token}` : `queued-${queued}`;
    this.#step({
      type: 'command',
      address,
      command,
      token,
      meta: { commandId, correlationId: commandId, principal: 'tester', at: (1_000 + token) as TimestampMs, sequence: queued },
    });
  }

  /** One wanted piece of I/O happens; its answer is on the way. */
  async perform(fault: Fault): Promise<boolean> {
    const wanted = this.#wanted.shift();
    if (wanted?.type === 'load') this.#answers.push({ type: 'loaded', address, stored: await this.#faulty.log.last(address) });
    if (wanted?.type === 'append') this.#answers.push({ type: 'appended', address, outcome: await this.#faulty.append(wanted.request, fault) });
    if (wanted?.type === 'recall')
      this.#answers.push({ type: 'recalled', address, commits: await this.#faulty.log.history(address, wanted.afterVersion, wanted.limit) });
    return wanted !== undefined;
  }

  receive(): boolean {
    const answer = this.#answers.shift();
    if (answer) this.#step(answer);
    return answer !== undefined;
  }

  evict(): void {
    this.#host.evict(address);
  }

  async settle(): Promise<void> {
    while ((await this.perform('none')) || this.receive());
  }

  #step(input: HostInput<Add>): void {
    for (const output of this.#host.step(input)) {
      if (output.type === 'load' || output.type === 'append' || output.type === 'recall') this.#wanted.push(output);
      else if (output.type === 'reply') this.results.get(output.token)?.push(output.result);
      else expect(output.stored.commit.state).toEqual(output.state);
    }
  }
}

type Move = { readonly writer: number; readonly kind: 'command' | 'perform' | 'receive' | 'evict'; readonly n: number; readonly fault: Fault };
const move = (writers: number) =>
  fc.record<Move>({
    writer: fc.nat(writers - 1),
    kind: fc.constantFrom('command', 'perform', 'perform', 'receive', 'receive', 'evict'),
    n: fc.integer({ min: -1, max: 5 }),
    fault: fc.constantFrom('none', 'denied', 'denied', 'lost_answer', 'lost_answer', 'lost_request'),
  });

const play = async (moves: readonly Move[], writerCount: number, keyOf: (token: number) => string | undefined) => {
  const faulty = new FaultyLog();
  const writers = Array.from({ length: writerCount }, () => new Writer(faulty));
  const given = new Map<number, Add>();
  for (const { writer: w, kind, n, fault } of moves) {
    const writer = writers[w] as Writer;
    if (kind === 'perform') await writer.perform(fault);
    else if (kind === 'receive') writer.receive();
    else if (kind === 'evict') writer.evict();
    else {
      const token = given.size + 1;
      const key = keyOf(token);
      const command: Add = key === undefined ? { type: 'Add', n } : { type: 'Add', n, key };
      given.set(token, command);
      writer.command(token, command);
    }
  }
  for (let round = 0; round < 2; round += 1) for (const writer of writers) await writer.settle();
  const history = await faulty.log.history(address, 0, moves.length + 1);
  return { history, writers, given };
};

const checkLog = (history: readonly StoredCommit[]): Counter | null => {
  const commits = history.map((s) => s.commit);
  expect(commits.map((c) => c.version)).toEqual(commits.map((_, i) => i + 1));
  const state = fold<Counter, Added>(
    counterDefinition,
    commits.flatMap((c) => c.events as unknown as Added[]),
  );
  expect(commits.at(-1)?.state ?? null).toEqual(state);
  return state;
};

const checkReplies = ({ history, writers }: Awaited<ReturnType<typeof play>>): void => {
  const commits = history.map((s) => s.commit);
  for (const writer of writers)
    for (const [token, results] of writer.results) {
      expect(results.length, `answers to command ${token}`).toBe(1);
      const [result] = results;
      if (result?.ok && result.decision === 'accepted') expect(commits).toContainEqual(result.commit);
    }
};

test('one writer: every command that could be decided is in the log exactly once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move(1), { maxLength: 120, size: 'max' }), async (moves) => {
      const played = await play(moves, 1, () => undefined);
      checkReplies(played);
      const expected = [...played.given.values()].reduce((total, { n }) => total + Math.max(0, n), 0);
      expect(checkLog(played.history)?.total ?? 0).toBe(expected);
      const ids = played.history.map((s) => s.commit.commandId);
      expect(new Set(ids).size).toBe(ids.length);
    }),
    { numRuns: 400 },
  );
});

test('two writers of idempotent commands: each key counts once, whoever was first', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move(2), { maxLength: 120, size: 'max' }), async (moves) => {
      const keyOf = (token: number) => `key-${token % 4}`;
      const played = await play(moves, 2, keyOf);
      checkReplies(played);
      const state = checkLog(played.history);
      expect(new Set(state?.keys).size).toBe(state?.keys.length ?? 0);
      for (const [token, { n }] of played.given) if (n > 0) expect(state?.keys).toContain(keyOf(token));
    }),
    { numRuns: 400 },
  );
});

test('a queue that delivers again, to whichever writer lives: each command counts once and each delivery is answered with it', async () => {
  const delivery = fc.record({ again: fc.boolean(), back: fc.nat(20), n: fc.nat(3), dies: fc.boolean(), lost: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(delivery, { maxLength: 60, size: 'max' }), async (deliveries) => {
      const faulty = new FaultyLog();
      const queue: Add[] = [];
      let writer = new Writer(faulty);
      for (const [token, { again, back, n, dies, lost }] of deliveries.entries()) {
        const place = again && queue.length > 0 ? Math.max(1, queue.length - back) : queue.push({ type: 'Add', n });
        writer.command(token, queue[place - 1] as Add, place);
        if (dies) {
          // Killed after its request left, whether or not it arrived; nobody hears the answer.
          await writer.perform('none');
          writer.receive();
          await writer.perform(lost ? 'lost_request' : 'none');
          writer = new Writer(faulty);
          continue;
        }
        await writer.settle();
        const [result] = writer.results.get(token) ?? [];
        const value = (queue[place - 1] as Add).n;
        if (value === 0) expect(result).toSatisfy((r: CommandResult) => (r.ok ? r.decision === 'ignored' : r.error.code === 'SUPERSEDED'));
        else if (result?.ok) expect(result).toMatchObject({ decision: 'accepted', commit: { commandId: `queued-${place}`, events: [{ n: value }] } });
        else expect(result?.error.code).toBe('SUPERSEDED');
      }
      const history = await faulty.log.history(address, 0, deliveries.length + 1);
      const obeyed = history.map(({ commit }) => commit.commandId);
      expect(new Set(obeyed).size).toBe(obeyed.length);
      for (const [token, results] of writer.results)
        if (results[0]?.ok === false) expect(obeyed, `delivery ${token} was told that it came too late`).not.toContain(results[0].error.details?.['commandId']);
    }),
    { numRuns: 400 },
  );
});
