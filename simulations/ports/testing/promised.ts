/**
 * The simulated ports behind the promises of the real ones, so that the same contract suites run against them. Virtual time is
 * driven from here: a call runs it on until it is answered, and in between it keeps pace with the wall, as a server would.
 */
import { DsecError } from '#bus/errors.ts';
import type { Shard } from '#bus/ids.ts';
import type { CommandConsumer, CommandQueue, Delivery, WaitingCommand } from '#actors/ports/command-queue.ts';
import type { EventLog, ForgottenHandler, Tail, TailHandler } from '#actors/ports/event-log.ts';
import { EPOCH_MS } from '../../kernel/clock.ts';
import { Random } from '../../kernel/random.ts';
import { Trace } from '../../kernel/trace.ts';
import { US_PER_MS, VirtualTime } from '../../kernel/virtual-time.ts';
import type { SimCommandQueue } from '../command-queue.ts';
import { type Answer, BusServer, SimEventLog } from '../event-log.ts';
import type { SimHandler } from '../queue-consumer.ts';
import type { EventStore } from '../event-store.ts';
import { PORT_LIMITS } from '../limits.ts';
import { Link } from '../link.ts';
import type { QueuedCommand } from '../command-store.ts';
import { SimTail } from '../tail.ts';

const PACE_MS = 5;

export class DrivenTime {
  readonly time: VirtualTime;
  readonly server: BusServer;
  readonly link: Link;
  readonly #pace: NodeJS.Timeout;

  constructor(seed = 1) {
    const random = Random.fromSeed(seed);
    this.time = new VirtualTime(new Trace(), random);
    this.server = new BusServer(this.time, random.child('bus'));
    this.link = new Link(this.time, random.child('link'));
    this.#pace = setInterval(() => this.elapse(PACE_MS), PACE_MS);
  }

  elapse(ms: number): void {
    this.time.run(this.time.nowUs + ms * US_PER_MS);
  }

  /** Runs time on until the call is answered. */
  async call<T>(start: (done: (value: T) => void) => void): Promise<T> {
    const answers: T[] = [];
    start((value) => answers.push(value));
    for (let ms = 0; answers.length === 0 && ms < 2 * PORT_LIMITS.answerMs; ms += 1) this.elapse(1);
    if (answers.length === 0) throw new Error('the simulated port never answered');
    return answers[0] as T;
  }

  stop(): void {
    clearInterval(this.#pace);
  }
}

const unwrap = <T>(answer: Answer<T>): T => {
  if (!answer.ok) throw new DsecError(answer.error);
  return answer.value;
};

export class PromisedEventLog implements EventLog {
  readonly #driven: DrivenTime;
  readonly #store: EventStore;
  readonly #log: SimEventLog;
  readonly #createdAt: string;

  constructor(driven: DrivenTime, store: EventStore) {
    this.#driven = driven;
    this.#store = store;
    this.#log = new SimEventLog(driven.server, store, driven.link);
    this.#createdAt = new Date(EPOCH_MS).toISOString();
  }

  append: EventLog['append'] = (request) => this.#driven.call((done) => this.#log.append(request, done));
  forget: EventLog['forget'] = (address, sequence, ttlMs) => this.#driven.call((done) => this.#log.forget(address, sequence, ttlMs, done));
  last: EventLog['last'] = async (address) => unwrap(await this.#driven.call((done) => this.#log.last(address, done)));
  lastOfEach: EventLog['lastOfEach'] = async (filter) => unwrap(await this.#driven.call((done) => this.#log.lastOfEach(filter, done)));
  addressesOf: EventLog['addressesOf'] = async (filter) => (await this.lastOfEach(filter)).map(({ address }) => address);
  history: EventLog['history'] = async (address, after, limit) => unwrap(await this.#driven.call((done) => this.#log.history(address, after, limit, done)));
  bounds: EventLog['bounds'] = async (shard) => ({ ...this.#store.bounds(shard), createdAt: this.#createdAt });

  async tail(shard: Shard, fromSequence: number, handler: TailHandler, onForgotten?: ForgottenHandler): Promise<Tail> {
    const { server, link } = this.#driven;
    const tail = new SimTail(server, this.#store, link, shard, fromSequence, (seen, done) => {
      const handled = seen.kind === 'commit' ? Promise.resolve(seen.stored).then(handler) : Promise.resolve(seen).then(onForgotten);
      handled.then(
        () => done(true),
        () => done(false),
      );
    });
    this.wakeTails = () => tail.wake();
    return { close: () => new Promise((resolve) => tail.close(() => resolve())) };
  }

  /** After an outage. */
  wakeTails = (): void => {};
}

export const promisedQueue = (driven: DrivenTime, queue: SimCommandQueue): CommandQueue => ({
  enqueue: (subject, messageId, data) => driven.call((done) => queue.enqueue(subject, messageId, data, done)),
  waiting: async (subject, after, limit) =>
    unwrap(await driven.call<Answer<QueuedCommand[]>>((done) => queue.waiting(subject, after, limit, done))) as WaitingCommand[],
  lastSequence: async () => unwrap(await driven.call<Answer<number>>((done) => queue.lastSequence(done))),
  consume: async (options, handler): Promise<CommandConsumer> => {
    const running = new Set<Promise<void>>();
    const handle: SimHandler = (simulated) => {
      const { subject, data, sequence, attempt } = simulated;
      const delivery: Delivery = {
        subject,
        data: data as Uint8Array,
        sequence,
        attempt,
        extend: () => simulated.extend(),
        ack: () => simulated.ack(),
        retry: (delayMs) => simulated.retry(delayMs),
        discard: (reason) => simulated.discard(reason),
      };
      const work = Promise.resolve(delivery)
        .then(handler)
        .catch(() => simulated.retry(PORT_LIMITS.failedHandlerRetryMs))
        .finally(() => {
          simulated.finished();
          running.delete(work);
        });
      running.add(work);
    };
    const consumer = unwrap(await driven.call<Answer<{ close(): void }>>((done) => queue.consume(options, handle, done)));
    return {
      close: async () => {
        consumer.close();
        await Promise.all(running);
      },
    };
  },
});
