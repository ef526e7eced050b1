/** Reads through a range of a stream once, by a consumer that exists only for that. */
import type { ConsumerConfig } from '@nats-io/jetstream';
import { nuid } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import type { BusContext } from './context.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import { type PullEnd, type PulledMessage, PullInbox } from './pull.ts';

type Range = Pick<ConsumerConfig, 'deliver_policy' | 'filter_subject'> & Partial<Pick<ConsumerConfig, 'opt_start_seq' | 'opt_start_time'>>;

const NANOS_PER_MS = 1_000_000;

/** A consumer that leaves no trace on disk and dies with its reader. */
export const readingConsumer = (name: string): Partial<ConsumerConfig> & { name: string } => ({
  name,
  ack_policy: 'none',
  mem_storage: true,
  num_replicas: 1,
  inactive_threshold: JETSTREAM_LIMITS.idleConsumerMs * NANOS_PER_MS,
});

/**
 * Calls `take` with what the range held when the consumer was made, in stream order, until it answers false or throws.
 * Messages stored meanwhile may come too: a range that grows faster than it is read must still end.
 */
export const readOnce = async (context: BusContext, stream: string, range: Range, take: (message: PulledMessage) => boolean): Promise<void> => {
  const name = `read-${nuid.next()}`;
  const { num_pending: total } = await context.api.createConsumer(stream, { ...readingConsumer(name), ...range });
  let left = total;
  let wanted = true;
  let failure: unknown;
  let onEnd: (end: PullEnd) => void = () => {};
  const inbox = new PullInbox(context, stream, name, {
    message: (message) => {
      left = Math.min(left - 1, message.pending);
      if (!wanted) return;
      try {
        wanted = take(message);
      } catch (thrown) {
        failure = thrown; // the client's reader must not see it
        wanted = false;
      }
    },
    end: (end) => onEnd(end),
  });
  try {
    while (wanted && left > 0) {
      const end = await new Promise<PullEnd>((resolve) => {
        onEnd = resolve;
        inbox.pull(Math.min(left, JETSTREAM_LIMITS.readBatch), { wait: false });
      });
      if (failure) throw failure;
      if (end === 'broken') throw DsecError.of('BUS_UNAVAILABLE', `the bus went away while ${stream} was being read; repeat the read`);
      if (end === 'empty') return;
    }
  } finally {
    inbox.close();
    // Best effort: a consumer that stays behind goes by itself after its idle time.
    context.api.deleteConsumer(stream, name).catch(() => {});
  }
};
