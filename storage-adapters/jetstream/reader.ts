/**
 * Single messages of a stream. `direct` asks whichever replica answers first, which is exact on one server and may lag in
 * a cluster; `leader` is always exact and slower. Who must not miss a commit that was just stored asks the leader.
 */
import { DsecError } from '#bus/errors.ts';
import { HEADER, type StoredMessage } from '../commit-message.ts';
import { type JetStreamApi, API_PREFIX } from './api.ts';
import { ApiRefusal, JS, noAnswerError, STATUS } from './errors.ts';
import type { Mux } from './mux.ts';

export type ReadFrom = 'direct' | 'leader';

export class Reader {
  readonly #mux: Mux;
  readonly #api: JetStreamApi;

  constructor(mux: Mux, api: JetStreamApi) {
    this.#mux = mux;
    this.#api = api;
  }

  /** Newest message of a subject, or null. */
  last(stream: string, subject: string, from: ReadFrom): Promise<StoredMessage | null> {
    return from === 'leader' ? this.#fromLeader(stream, { last_by_subj: subject }) : this.#direct(stream, subject);
  }

  /** First message of a subject after `sequence`, or null; always from the leader. */
  nextAfter(stream: string, subject: string, sequence: number): Promise<StoredMessage | null> {
    return this.#fromLeader(stream, { seq: sequence + 1, next_by_subj: subject });
  }

  /** The same from whichever replica answers first, which may not have the newest yet; its bytes come as they are. */
  nextAfterAnywhere(stream: string, subject: string, sequence: number): Promise<StoredMessage | null> {
    return this.#ask(`${API_PREFIX}.DIRECT.GET.${stream}`, subject, Buffer.from(JSON.stringify({ seq: sequence + 1, next_by_subj: subject })));
  }

  #direct(stream: string, subject: string): Promise<StoredMessage | null> {
    return this.#ask(`${API_PREFIX}.DIRECT.GET.${stream}.${subject}`, subject, new Uint8Array());
  }

  async #ask(request: string, subject: string, query: Uint8Array): Promise<StoredMessage | null> {
    const answer = await this.#mux.request(request, query);
    if (answer.kind === 'none') throw new DsecError(noAnswerError(subject, answer.why));
    const { headers, data } = answer.message;
    if (headers?.code === STATUS.notFound) return null;
    const sequence = Number(headers?.get('Nats-Sequence'));
    if (headers?.code !== 0 || !(sequence > 0))
      throw DsecError.of('BUS_UNAVAILABLE', `${subject}: read answered with status ${headers?.status ?? 'none'}; repeat it`);
    return { subject: headers.get('Nats-Subject'), sequence, data, messageId: headers.get(HEADER.messageId) };
  }

  async #fromLeader(stream: string, query: Record<string, unknown>): Promise<StoredMessage | null> {
    try {
      const { message } = await this.#api.call<{ message: RawMessage }>(`read of ${stream}`, `STREAM.MSG.GET.${stream}`, query);
      return {
        subject: message.subject,
        sequence: message.seq,
        data: Buffer.from(message.data ?? '', 'base64'),
        messageId: headerOf(message, HEADER.messageId),
      };
    } catch (thrown) {
      if (thrown instanceof ApiRefusal && thrown.apiCode === JS.messageNotFound) return null;
      throw thrown;
    }
  }
}

type RawMessage = { readonly subject: string; readonly seq: number; readonly data?: string; readonly hdrs?: string };

const headerOf = ({ hdrs }: RawMessage, name: string): string => {
  const prefix = `${name}: `;
  const line = Buffer.from(hdrs ?? '', 'base64')
    .toString('utf8')
    .split('\r\n')
    .find((l) => l.startsWith(prefix));
  return line?.slice(prefix.length) ?? '';
};
