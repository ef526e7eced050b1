/** Calls of the JetStream API as JSON request and answer, over the shared inbox. */
import type { ConsumerConfig, ConsumerInfo, StreamConfig, StreamInfo } from '@nats-io/jetstream';
import { DsecError } from '#bus/errors.ts';
import { type ApiError, ApiRefusal, JS, noAnswerError } from './errors.ts';
import type { Mux } from './mux.ts';

export const API_PREFIX = '$JS.API';

export class JetStreamApi {
  readonly #mux: Mux;

  constructor(mux: Mux) {
    this.#mux = mux;
  }

  streamInfo(stream: string): Promise<StreamInfo> {
    return this.call(`stream ${stream}`, `STREAM.INFO.${stream}`);
  }
  /** Subjects that the stream's leader holds messages of. */
  async subjectsOf(stream: string, filter: string): Promise<string[]> {
    const subjects: string[] = [];
    for (;;) {
      const { state, total = 0 } = await this.call<StreamInfo>(`subjects of ${stream}`, `STREAM.INFO.${stream}`, {
        subjects_filter: filter,
        offset: subjects.length,
      });
      const page = Object.keys(state.subjects ?? {});
      subjects.push(...page);
      if (page.length === 0 || subjects.length >= total) return subjects;
    }
  }
  createStream(config: Partial<StreamConfig> & { name: string }): Promise<StreamInfo> {
    return this.call(`create stream ${config.name}`, `STREAM.CREATE.${config.name}`, config);
  }
  updateStream(config: Partial<StreamConfig> & { name: string }): Promise<StreamInfo> {
    return this.call(`update stream ${config.name}`, `STREAM.UPDATE.${config.name}`, config);
  }

  /** Creates a consumer, or changes the one of this name; fails where the two cannot be reconciled. */
  createConsumer(stream: string, config: Partial<ConsumerConfig> & { name: string }): Promise<ConsumerInfo> {
    // One filter is part of the subject, so that a role's permissions can name what it may read.
    const filter = config.filter_subject ? `.${config.filter_subject}` : '';
    return this.call(`consumer ${config.name} of ${stream}`, `CONSUMER.CREATE.${stream}.${config.name}${filter}`, { stream_name: stream, config });
  }
  consumerInfo(stream: string, name: string): Promise<ConsumerInfo> {
    return this.call(`consumer ${name} of ${stream}`, `CONSUMER.INFO.${stream}.${name}`);
  }
  /** Also a success when there is none. */
  async deleteConsumer(stream: string, name: string): Promise<void> {
    try {
      await this.call(`delete consumer ${name} of ${stream}`, `CONSUMER.DELETE.${stream}.${name}`);
    } catch (thrown) {
      if (!(thrown instanceof ApiRefusal && thrown.apiCode === JS.consumerNotFound)) throw thrown;
    }
  }

  /** Throws `ApiRefusal` for an error answer, BUS_UNAVAILABLE when there is no answer. */
  async call<T>(what: string, verb: string, body?: unknown): Promise<T> {
    const answer = await this.#mux.request(`${API_PREFIX}.${verb}`, body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)));
    if (answer.kind === 'none') throw new DsecError(noAnswerError(what, answer.why));
    const parsed = answer.message.json<T & { error?: ApiError }>();
    if (parsed.error) throw new ApiRefusal(what, parsed.error);
    return parsed;
  }
}
