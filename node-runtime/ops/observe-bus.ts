/** Ports of the bus that count: the same calls with the same answers, and how long and how they ended. */
import type { CommandConsumer, CommandQueue, Delivery } from '#actors/ports/command-queue.ts';
import type { AppendOutcome, EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import { countsOf } from './commit-counts.ts';
import type { Instruments } from './instruments.ts';
import type { LogReading } from './log-reading.ts';

const BYTES_PER_MIB = 1_048_576;

/** `onHeard` is told of every commit that a tail delivers, `reading` of what was handled. */
export const observeEventLog = (inner: EventLog, i: Instruments, role: string, reading: LogReading, onHeard: (stored: StoredCommit) => void): EventLog => ({
  append: async (request) => {
    const { kind } = request.address;
    const startedAt = performance.now();
    const outcome = await inner.append(request);
    i.commitSeconds.observe({ role, kind }, (performance.now() - startedAt) / 1_000);
    i.commits.inc({ role, kind, outcome: wordOf(outcome) });
    if (outcome.outcome === 'applied') count(i, role, request.commit);
    return outcome;
  },
  last: (address) => inner.last(address),
  lastOfEach: (filter) => inner.lastOfEach(filter),
  addressesOf: (filter) => inner.addressesOf(filter),
  history: (address, afterVersion, limit) => inner.history(address, afterVersion, limit),
  tail: async (shard, fromSequence, handler, onForgotten) => {
    const { moved, end } = reading.begin(shard, fromSequence);
    try {
      const tail = await inner.tail(
        shard,
        fromSequence,
        (stored) => {
          onHeard(stored);
          const handling = handler(stored);
          return handling ? handling.then(() => moved(stored.sequence)) : moved(stored.sequence);
        },
        async (forgotten) => {
          await onForgotten?.(forgotten);
          moved(forgotten.sequence);
        },
      );
      return {
        close: () => {
          end();
          return tail.close();
        },
      };
    } catch (thrown) {
      end();
      throw thrown;
    }
  },
  bounds: (shard) => inner.bounds(shard),
  forget: async (address, expectedSequence, ttlMs) => {
    const outcome = await inner.forget(address, expectedSequence, ttlMs);
    i.commits.inc({ role, kind: address.kind, outcome: outcome.outcome === 'applied' ? 'forgotten' : wordOf(outcome) });
    return outcome;
  },
});

const wordOf = (outcome: AppendOutcome): string => (outcome.outcome === 'not_applied' ? outcome.reason : outcome.outcome);

const count = (i: Instruments, role: string, commit: StoredCommit['commit']): void => {
  for (const { type } of commit.events) i.events.inc({ role, kind: commit.kind, event: type });
  const counts = countsOf(commit);
  if (counts.accepted > 0) i.createsAccepted.inc(counts.accepted);
  if (counts.assigned > 0) i.placementAttempts.inc({ attempt: 'first' }, counts.assigned);
  if (counts.reassigned > 0) i.placementAttempts.inc({ attempt: 'again' }, counts.reassigned);
  for (const [code, sandboxes] of Object.entries(counts.unplaceable)) i.createsRejected.inc({ code }, sandboxes);
  if (counts.started > 0) i.sandboxesStarted.inc(counts.started);
  if (counts.failed) i.sandboxesFailed.inc(counts.failed);
  if (counts.givenBackMiB > 0) i.givenBack.inc(counts.givenBackMiB * BYTES_PER_MIB);
};

/** `onConsumer` is told of each consumer, and called off when it is closed. */
export const observeQueue = (inner: CommandQueue, i: Instruments, role: string, onConsumer: (name: string) => () => void): CommandQueue => ({
  enqueue: async (subject, messageId, data) => {
    const outcome = await inner.enqueue(subject, messageId, data);
    i.enqueued.inc({ role, outcome: outcome.outcome === 'applied' && outcome.duplicate ? 'duplicate' : outcome.outcome });
    return outcome;
  },
  consume: async (options, handler): Promise<CommandConsumer> => {
    const labels = { role, consumer: options.name };
    const consumer = await inner.consume(options, async (delivery) => {
      i.inHand.inc(labels);
      try {
        await handler(counted(delivery, (result) => i.deliveries.inc({ ...labels, result })));
      } finally {
        i.inHand.dec(labels);
      }
    });
    const off = onConsumer(options.name);
    return {
      close: () => {
        off();
        return consumer.close();
      },
    };
  },
  waiting: (subject, afterSequence, limit) => inner.waiting(subject, afterSequence, limit),
  lastSequence: () => inner.lastSequence(),
});

const counted = (delivery: Delivery, left: (result: 'ack' | 'retry' | 'discard') => void): Delivery => ({
  subject: delivery.subject,
  data: delivery.data,
  sequence: delivery.sequence,
  attempt: delivery.attempt,
  extend: () => delivery.extend(),
  ack: () => {
    left('ack');
    delivery.ack();
  },
  retry: (delayMs) => {
    left('retry');
    delivery.retry(delayMs);
  },
  discard: (reason) => {
    left('discard');
    delivery.discard(reason);
  },
});
