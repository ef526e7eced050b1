/**
 * The log as a model: one list per actor, answers at once, and lies about the outcome when it is told to. Tests of the host
 * use it to say exactly what was stored and what the host was told; the real adapters have their own contract suite.
 */
import { wireError } from '#bus/errors.ts';
import { type ActorAddress, commitSubject } from '#bus/subjects.ts';
import type { AppendOutcome, AppendRequest, StoredCommit } from '../../ports/event-log.ts';

/** `lostAnswer`: stored, but the answer is a time-out. `lostRequest`: a time-out, and nothing was stored. */
export type Fault = 'none' | 'lostAnswer' | 'lostRequest';

export class ModelLog {
  readonly #commits = new Map<string, StoredCommit[]>();
  readonly #tombstones = new Map<string, number>();
  readonly #messageIds = new Map<string, number>();
  #sequence = 0;

  last(address: ActorAddress): StoredCommit | null {
    return this.history(address).at(-1) ?? null;
  }

  history(address: ActorAddress): readonly StoredCommit[] {
    return this.#commits.get(commitSubject(address)) ?? [];
  }

  append(request: AppendRequest, fault: Fault = 'none'): AppendOutcome {
    if (fault === 'lostRequest') return unknown;
    const outcome = this.#store(structuredClone(request));
    return fault === 'lostAnswer' ? unknown : outcome;
  }

  forget(address: ActorAddress): void {
    this.#sequence += 1;
    this.#commits.delete(commitSubject(address));
    this.#tombstones.set(commitSubject(address), this.#sequence);
  }

  #store({ address, commit, expectedSequence, messageId }: AppendRequest): AppendOutcome {
    const known = this.#messageIds.get(messageId);
    if (known !== undefined) return { outcome: 'applied', sequence: known };
    const subject = commitSubject(address);
    const newest = this.last(address)?.sequence ?? this.#tombstones.get(subject) ?? 0;
    if (newest !== expectedSequence) return conflict;
    this.#sequence += 1;
    // What is stored has been JSON: a state that does not survive it must show here.
    const stored: StoredCommit = { address, sequence: this.#sequence, commit: JSON.parse(JSON.stringify(commit)) };
    this.#commits.set(subject, [...(this.#commits.get(subject) ?? []), stored]);
    this.#messageIds.set(messageId, this.#sequence);
    return { outcome: 'applied', sequence: this.#sequence };
  }
}

const unknown: AppendOutcome = { outcome: 'unknown', error: wireError('BUS_UNAVAILABLE', 'no answer in time') };
const conflict: AppendOutcome = { outcome: 'not_applied', reason: 'conflict', error: wireError('INTERNAL', 'another writer was first') };
