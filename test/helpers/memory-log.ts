/** The event log in memory as the contract suite wants it, with the faults it asks for. */
import type { Shard } from '#bus/ids.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { ManualClock, MemoryEventLog, type WriteFault } from '#adapters/memory/mod.ts';
import type { EventLogFactory } from '#test/contract/event-log.contract.ts';

/** `through`: what the suite sees of the log, where it is not the log itself. */
export const memoryLogFactory =
  (through: (log: EventLog, shard: Shard) => EventLog = (log) => log): EventLogFactory =>
  async ({ duplicateWindowMs }) => {
    const shard = '0' as Shard;
    const clock = new ManualClock(1_700_000_000_000);
    const republished: { subject: string; bytes: number }[] = [];
    let nextFault: WriteFault = 'none';
    const log = new MemoryEventLog({
      shards: [shard],
      clock,
      duplicateWindowMs,
      republish: (subject, data) => void republished.push({ subject, bytes: data.byteLength }),
      fault: () => {
        const fault = nextFault;
        nextFault = 'none';
        return fault;
      },
    });
    return {
      log: through(log, shard),
      shard,
      elapse: async (ms) => clock.advance(ms),
      loseNextAnswer: async () => {
        nextFault = 'lost_answer';
      },
      outage: async (during) => {
        log.setConnected(false);
        await during();
        log.setConnected(true);
      },
      republished: () => republished,
      inject: async (address, data) => log.inject(address, data),
      close: async () => {},
    };
  };
