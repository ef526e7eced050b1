/**
 * One stream, as JetStream keeps it: rising sequences that are never given twice, expected sequence per subject, memory
 * of message ids for a window, roll-up, expiry. No promise, no timer: time comes in with every call.
 */
import { HEADER, type Headers, type StoredMessage } from '../commit-message.ts';

export type Stored = { readonly kind: 'stored' | 'duplicate'; readonly sequence: number } | { readonly kind: 'wrong_sequence' };

type Message = StoredMessage & { readonly expiresAtMs: number };

export class MemoryStream {
  readonly #duplicateWindowMs: number;
  /** In stream order, because a map keeps the order of insertion. */
  readonly #messages = new Map<number, Message>();
  readonly #bySubject = new Map<string, Message[]>();
  /** In order of time. */
  readonly #ids = new Map<string, { readonly sequence: number; readonly atMs: number }>();
  readonly #expiring = new Set<Message>();
  #lastSequence = 0;

  constructor(duplicateWindowMs: number) {
    this.#duplicateWindowMs = duplicateWindowMs;
  }

  get lastSequence(): number {
    return this.#lastSequence;
  }
  get size(): number {
    return this.#messages.size;
  }
  firstSequence(): number {
    for (const sequence of this.#messages.keys()) return sequence;
    return this.#lastSequence + 1;
  }

  store(nowMs: number, subject: string, data: Uint8Array, headers: Headers): Stored {
    this.#expire(nowMs);
    const messageId = headers[HEADER.messageId] ?? '';
    const known = this.#ids.get(messageId);
    if (known) return { kind: 'duplicate', sequence: known.sequence };
    const expected = headers[HEADER.expectedSequence];
    if (expected !== undefined && Number(expected) !== (this.last(nowMs, subject)?.sequence ?? 0)) return { kind: 'wrong_sequence' };
    if (headers[HEADER.rollup] === 'sub') for (const message of [...(this.#bySubject.get(subject) ?? [])]) this.#remove(message);

    this.#lastSequence += 1;
    const ttl = headers[HEADER.ttl];
    const ttlMs = ttl ? Number.parseInt(ttl, 10) * 1_000 : Number.POSITIVE_INFINITY;
    const message = { subject, sequence: this.#lastSequence, data: Uint8Array.from(data), messageId, expiresAtMs: nowMs + ttlMs };
    this.#messages.set(message.sequence, message);
    const siblings = this.#bySubject.get(subject);
    if (siblings) siblings.push(message);
    else this.#bySubject.set(subject, [message]);
    if (messageId) this.#ids.set(messageId, { sequence: message.sequence, atMs: nowMs });
    if (message.expiresAtMs !== Number.POSITIVE_INFINITY) this.#expiring.add(message);
    return { kind: 'stored', sequence: message.sequence };
  }

  last(nowMs: number, subject: string): StoredMessage | null {
    this.#expire(nowMs);
    return this.#bySubject.get(subject)?.at(-1) ?? null;
  }

  /** Messages of one subject, oldest first. */
  ofSubject(nowMs: number, subject: string): readonly StoredMessage[] {
    this.#expire(nowMs);
    return this.#bySubject.get(subject) ?? [];
  }

  /** Newest message of every subject that matches, in stream order. */
  lastOfEach(nowMs: number, matches: (subject: string) => boolean): StoredMessage[] {
    this.#expire(nowMs);
    const newest = [...this.#bySubject].filter(([subject]) => matches(subject)).flatMap(([, messages]) => messages.slice(-1));
    return newest.sort((a, b) => a.sequence - b.sequence);
  }

  /** First message at or after a sequence. */
  from(nowMs: number, sequence: number): StoredMessage | null {
    this.#expire(nowMs);
    for (let s = Math.max(sequence, this.firstSequence()); s <= this.#lastSequence; s += 1) {
      const message = this.#messages.get(s);
      if (message) return message;
    }
    return null;
  }

  remove(sequence: number): void {
    const message = this.#messages.get(sequence);
    if (message) this.#remove(message);
  }

  #expire(nowMs: number): void {
    for (const [id, { atMs }] of this.#ids) {
      if (atMs + this.#duplicateWindowMs > nowMs) break;
      this.#ids.delete(id);
    }
    for (const message of this.#expiring) if (message.expiresAtMs <= nowMs) this.#remove(message);
  }

  #remove(message: Message): void {
    this.#messages.delete(message.sequence);
    this.#expiring.delete(message);
    const left = (this.#bySubject.get(message.subject) ?? []).filter((m) => m !== message);
    if (left.length > 0) this.#bySubject.set(message.subject, left);
    else this.#bySubject.delete(message.subject);
  }
}

/** NATS's matching: `*` is one token, `>` is the rest. */
export const subjectMatches = (filter: string, subject: string): boolean => {
  const wanted = filter.split('.');
  const tokens = subject.split('.');
  for (const [i, token] of wanted.entries()) {
    if (token === '>') return tokens.length > i;
    if (i >= tokens.length || (token !== '*' && token !== tokens[i])) return false;
  }
  return wanted.length === tokens.length;
};

/** Whether some subject could match both. */
export const filtersOverlap = (one: string, other: string): boolean => {
  const a = one.split('.');
  const b = other.split('.');
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    if (a[i] === '>' || b[i] === '>') return i < a.length && i < b.length;
    if (a[i] === undefined || b[i] === undefined) return false;
    if (a[i] !== '*' && b[i] !== '*' && a[i] !== b[i]) return false;
  }
  return true;
};
