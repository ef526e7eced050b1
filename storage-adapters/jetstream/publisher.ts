/**
 * Publishes into streams: one message, one acknowledgement, three outcomes. The size is checked with headers before
 * anything is sent, because one byte too many would make the server close the connection that everybody shares.
 */
import { headers, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { WIRE_LIMITS } from '#bus/limits.ts';
import { headerBytes, type Headers, tooLargeError } from '../commit-message.ts';
import { type ApiError, noAnswerError, publishRefusal, type Refusal } from './errors.ts';
import type { Mux } from './mux.ts';

export type PublishOutcome = { readonly outcome: 'stored'; readonly sequence: number; readonly duplicate: boolean } | Refusal;

type Acknowledgement = { readonly stream?: string; readonly seq?: number; readonly duplicate?: boolean; readonly error?: ApiError };

export class Publisher {
  readonly #nc: NatsConnection;
  readonly #mux: Mux;
  #maxPayloadBytes: number = WIRE_LIMITS.maxPayloadBytes;

  constructor(nc: NatsConnection, mux: Mux) {
    this.#nc = nc;
    this.#mux = mux;
  }

  async publish(subject: string, data: Uint8Array, fields: Headers): Promise<PublishOutcome> {
    this.#maxPayloadBytes = this.#nc.info?.max_payload ?? this.#maxPayloadBytes;
    const bytes = data.byteLength + headerBytes(fields);
    if (bytes > this.#maxPayloadBytes) return { outcome: 'rejected', error: tooLargeError(subject, bytes, this.#maxPayloadBytes) };
    const answer = await this.#mux.request(subject, data, encodeHeaders(fields));
    if (answer.kind === 'none') return { outcome: 'unknown', error: noAnswerError(subject, answer.why) };
    const ack = readAcknowledgement(answer.message.data);
    if (ack.error) return publishRefusal(subject, ack.error);
    if (!ack.seq) return { outcome: 'unknown', error: noAnswerError(subject, 'no_responders') };
    return { outcome: 'stored', sequence: ack.seq, duplicate: ack.duplicate === true };
  }
}

/** Something other than a stream may answer; what it says proves nothing. */
const readAcknowledgement = (data: Uint8Array): Acknowledgement => {
  try {
    return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8')) as Acknowledgement;
  } catch {
    return {};
  }
};

const encodeHeaders = (fields: Headers): MsgHdrs | undefined => {
  if (headerBytes(fields) === 0) return undefined;
  const block = headers();
  for (const name in fields) block.append(name, fields[name] ?? '');
  return block;
};
