/** A bus whose every message is sent by the test: what arrives, in which order, and what is lost, is written down. */
import type { ApiVerb } from '#bus/api/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import { toWireError } from '#bus/errors.ts';
import type { RequestId, SandboxId } from '#bus/ids.ts';
import { outSubject, parseApiSubject, requestAddress, sandboxAddress } from '#bus/subjects.ts';
import { type Bus, BusFailure, type BusMessage } from '../transport/bus.ts';
import { PROJECT } from './records.ts';

type Subscriber = { readonly pattern: RegExp; readonly onMessage: (message: BusMessage) => void; readonly onFailure: (failure: BusFailure) => void };
type Answer = (request: Record<string, unknown>) => unknown;

export class ScriptedBus implements Bus {
  /** Verbs in the order they were asked. */
  readonly asked: string[] = [];
  readonly answers: Partial<Record<ApiVerb, Answer>> = { info: () => ({ platformVersion: 'test', shards: ['0'], laneCount: 1 }) };
  readonly #subscribers = new Set<Subscriber>();
  readonly #onReconnect = new Set<() => void>();

  async request(subject: string, payload: Uint8Array): Promise<Uint8Array> {
    const verb = parseApiSubject(subject)?.verb as ApiVerb;
    this.asked.push(verb);
    const answer = this.answers[verb];
    if (!answer) throw new BusFailure('forbidden', `the test does not expect ${verb}`);
    try {
      const data = await answer(JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>);
      return Buffer.from(JSON.stringify({ ok: true, data }));
    } catch (thrown) {
      return Buffer.from(JSON.stringify({ ok: false, error: toWireError(thrown) }));
    }
  }

  subscribe(subject: string, onMessage: Subscriber['onMessage'], onFailure: Subscriber['onFailure']): () => void {
    const subscriber = { pattern: new RegExp(`^${subject.replaceAll('.', '\\.').replaceAll('*', '[^.]+')}$`), onMessage, onFailure };
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  onReconnect(listener: () => void): () => void {
    this.#onReconnect.add(listener);
    return () => this.#onReconnect.delete(listener);
  }

  async close(): Promise<void> {}

  get subscriptionCount(): number {
    return this.#subscribers.size;
  }

  /** Whoever listens now gets it; nobody else ever does. */
  publish(commit: Commit): void {
    const address = commit.kind === 'request' ? requestAddress(PROJECT, commit.actorId as RequestId) : sandboxAddress(PROJECT, commit.actorId as SandboxId);
    const subject = outSubject(address);
    const data = Buffer.from(JSON.stringify(commit));
    for (const { pattern, onMessage } of [...this.#subscribers]) if (pattern.test(subject)) onMessage({ subject, data, sequence: () => commit.version });
  }

  refuseSubscriptions(): void {
    for (const { onFailure } of [...this.#subscribers]) onFailure(new BusFailure('forbidden', 'no right'));
  }

  reconnect(): void {
    for (const listener of [...this.#onReconnect]) listener();
  }
}
