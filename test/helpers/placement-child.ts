/**
 * A placement process whose queue takes nothing for Edges: it chooses, commits, and stands still before it forwards, for as long as
 * it lives. For tests that kill it exactly there.
 * Arguments: server, number of lanes, number of shards. Prints `ready`, then a line for each message that it does not send.
 */
import { connect } from '@nats-io/transport-node';
import { quotaHolderName } from '#bus/iam/quota-lending.ts';
import { busConnectionOptions, connectJetStream } from '#adapters/jetstream/mod.ts';
import { systemClock } from '#actors/ports/clock.ts';
import type { CommandQueue } from '#actors/ports/command-queue.ts';
import { createLog } from '#runtime/log/log.ts';
import { PLACEMENT_LIMITS } from '#runtime/roles/placement/limits.ts';
import { Placement } from '#runtime/roles/placement/placement.ts';
import { QuotaHolder } from '#runtime/roles/placement/quota-holder.ts';

const TO_EDGES = 'dsec.cmd.edge.';

const [server = '', lanes = '', shards = ''] = process.argv.slice(2);
const connection = await connect(busConnectionOptions(server, 'placement-child'));
const { eventLog, commandQueue } = connectJetStream(connection, { ackWaitMs: PLACEMENT_LIMITS.ackWaitMs });
const queue: CommandQueue = {
  enqueue: (subject, messageId, data) => {
    if (!subject.startsWith(TO_EDGES)) return commandQueue.enqueue(subject, messageId, data);
    process.stdout.write(`before ${subject}\n`);
    return new Promise(() => {});
  },
  consume: (options, handler) => commandQueue.consume(options, handler),
  waiting: (subject, after, limit) => commandQueue.waiting(subject, after, limit),
  lastSequence: () => commandQueue.lastSequence(),
};
const log = createLog('placement', 'warn');
const quota = new QuotaHolder({ connection, clock: systemClock, log, holder: quotaHolderName(`placement-${process.pid}`, 1) });
await new Placement({ connection, eventLog, queue, clock: systemClock, log, quota, laneCount: Number(lanes), shardCount: Number(shards) }).start();
process.stdout.write('ready\n');
