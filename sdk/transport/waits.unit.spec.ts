/** A caller hears that his calls wait, on whom and why; once per silence, and of its end. */
import { expect, test } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import { SDK_LIMITS } from '../limits.ts';
import { BusFailure } from './bus.ts';
import { cancelled, type Clock, onAbort } from './clock.ts';
import { callWithRetry } from './retry.ts';
import { type WaitNotice, Waits } from './waits.ts';

const { waitNoticeFirstMs, waitNoticeEveryMs } = SDK_LIMITS;

/** Time passes when the test says so; sleepers wake in the order of their time. */
class HeldClock implements Clock {
  #now = 0;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];
  now = (): number => this.#now;
  random = (): number => 0.5;
  sleep = (delayMs: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const sleeper = { at: this.#now + delayMs, wake: resolve };
      this.#sleepers.push(sleeper);
      onAbort(signal, () => {
        this.#sleepers = this.#sleepers.filter((one) => one !== sleeper);
        reject(cancelled());
      });
    });

  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await new Promise(setImmediate);
      const next = this.#sleepers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#sleepers = this.#sleepers.filter((one) => one !== next);
      this.#now = next.at;
      next.wake();
    }
    this.#now = until;
  }

  get sleeping(): number {
    return this.#sleepers.length;
  }
}

const stand = () => {
  const clock = new HeldClock();
  const heard: WaitNotice[] = [];
  const waits = new Waits(clock, (notice) => heard.push(notice));
  let answer: (() => string) | undefined;
  const call = (on: string, giveUpAfterMs = 60_000) =>
    callWithRetry(
      clock,
      { what: `exec in ${on}`, unavailable: 'EDGE_UNAVAILABLE', attemptTimeoutMs: 1_000, giveUpAfterMs, idempotent: true, wait: waits.begin(on) },
      async () => {
        if (!answer) throw new BusFailure('no_responders', 'nobody');
        return answer();
      },
    );
  const answers = (with_: () => string): void => {
    answer = with_;
  };
  return { clock, heard, call, answers };
};

test('nothing is said of a silence that ends soon', async () => {
  const { clock, heard, call, answers } = stand();
  const calling = call('sb');
  await clock.pass(waitNoticeFirstMs - 500);
  answers(() => 'ok');
  await clock.pass(1_000);
  expect(await calling).toBe('ok');
  expect(heard).toEqual([]);
  expect(clock.sleeping).toBe(0);
});

test('one story for many calls: why, since when, until when, and that it is over', async () => {
  const { clock, heard, call, answers } = stand();
  const calling = [call('sb'), call('sb', 30_000)];
  await clock.pass(waitNoticeFirstMs + waitNoticeEveryMs + 500);
  expect(heard).toMatchObject([
    { state: 'waiting', on: 'sb', error: { code: 'EDGE_UNAVAILABLE' }, waitedMs: waitNoticeFirstMs, givesUpInMs: 60_000 - waitNoticeFirstMs },
    { state: 'waiting', waitedMs: waitNoticeFirstMs + waitNoticeEveryMs },
  ]);
  expect(heard[0]?.error.message).toContain('exec in sb');
  answers(() => 'ok');
  await clock.pass(1_000);
  await Promise.all(calling);
  expect(heard.slice(2)).toMatchObject([{ state: 'answered', on: 'sb', givesUpInMs: 0 }]);
  expect(clock.sleeping).toBe(0);
});

test('a refusal is an answer too; giving up is none', async () => {
  const refused = stand();
  const refusal = expect(refused.call('sb')).rejects.toMatchObject({ code: 'EXEC_NOT_FOUND' });
  await refused.clock.pass(waitNoticeFirstMs + 500);
  refused.answers(() => {
    throw DsecError.of('EXEC_NOT_FOUND', 'no such command');
  });
  await refused.clock.pass(1_000);
  await refusal;
  expect(refused.heard.map(({ state }) => state)).toEqual(['waiting', 'answered']);

  const silent = stand();
  const failure = expect(silent.call('sb', 5_000)).rejects.toMatchObject({ code: 'EDGE_UNAVAILABLE' });
  await silent.clock.pass(60_000);
  await failure;
  expect(silent.heard.map(({ state }) => state)).toEqual(['waiting']);
  expect(silent.clock.sleeping).toBe(0);
});

test('a listener that throws ends no call', async () => {
  const clock = new HeldClock();
  const wait = new Waits(clock, () => {
    throw new Error('nowhere to show it');
  }).begin('sb');
  wait.failed(DsecError.of('EDGE_UNAVAILABLE', 'silent'), 60_000);
  await clock.pass(waitNoticeFirstMs + 1);
  wait.ended(true);
  expect(clock.sleeping).toBe(0);
});
