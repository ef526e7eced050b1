/**
 * Records of commands on JetStream: the stream EXEC, one subject per sandbox.
 *
 * A fact that is told twice is one message within the server's window and two beyond it; the newest counts, and both say the same.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { CommandRecords, RecordedCommands } from '#actors/ports/command-records.ts';
import { encode } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ExecId, messageIdOf, type ProjectName, type SandboxId } from '#bus/ids.ts';
import { CommandRecord, type CommandEnded } from '#bus/op/command-record.ts';
import { EXEC_STREAM, execRecordSubject } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { HEADER } from '../commit-message.ts';
import type { BusContext } from './context.ts';
import { JETSTREAM_LIMITS } from './limits.ts';
import { readOnce } from './one-shot.ts';
import type { Publisher } from './publisher.ts';
import type { Reader } from './reader.ts';

type Place = { readonly sequence: number; readonly endedAt: TimestampMs };

export class JetStreamCommandRecords implements CommandRecords {
  readonly #context: BusContext;
  readonly #publisher: Publisher;
  readonly #reader: Reader;

  constructor(context: BusContext, publisher: Publisher, reader: Reader) {
    this.#context = context;
    this.#publisher = publisher;
    this.#reader = reader;
  }

  async append(project: ProjectName, record: CommandRecord): Promise<void> {
    const { sandboxId, execId, fact } = record;
    const subject = execRecordSubject(project, sandboxId);
    const headers = { [HEADER.messageId]: messageIdOf(project, sandboxId, execId, fact) };
    const data = encode('record', record);
    const giveUpAt = performance.now() + JETSTREAM_LIMITS.recordPatienceMs;
    for (let pauseMs: number = JETSTREAM_LIMITS.reopenMinMs; ; pauseMs = Math.min(pauseMs * 2, JETSTREAM_LIMITS.reopenMaxMs)) {
      const published = await this.#publisher.publish(subject, data, headers);
      if (published.outcome === 'stored') return;
      if (published.outcome === 'rejected') throw new DsecError(published.error);
      if (performance.now() + pauseMs > giveUpAt)
        throw DsecError.of('BUS_UNAVAILABLE', `command ${execId} ${fact}, but its record cannot be stored; repeat the call with the same key`);
      await delay(pauseMs);
    }
  }

  async of(project: ProjectName, sandboxId: SandboxId): Promise<RecordedCommands> {
    const subject = execRecordSubject(project, sandboxId);
    const places = new Map<ExecId, Place>();
    await readOnce(this.#context, EXEC_STREAM, { deliver_policy: 'all', filter_subject: subject }, ({ data, sequence }) => {
      const record = recordIn(data);
      if (record?.fact === 'ended') places.set(record.execId, { sequence, endedAt: record.exec.endedAt ?? record.at });
      return true;
    });
    return {
      endedAt: (execId) => places.get(execId)?.endedAt,
      ended: async (execId) => {
        const place = places.get(execId);
        const message = place ? await this.#reader.nextAfter(EXEC_STREAM, subject, place.sequence - 1) : null;
        return message ? endedIn(message.data, execId) : null;
      },
    };
  }
}

/** A record of a newer program, or no record at all, is none for this one: its command is run again, and says so. */
const recordIn = (data: Uint8Array): CommandRecord | undefined => {
  try {
    return CommandRecord.safeParse(JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8'))).data;
  } catch {
    return undefined;
  }
};

const endedIn = (data: Uint8Array, execId: ExecId): CommandEnded | null => {
  const record = recordIn(data);
  return record?.fact === 'ended' && record.execId === execId ? record : null;
};
