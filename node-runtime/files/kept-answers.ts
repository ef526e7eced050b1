/** Answers of operations that have a key, so that a repetition of the call joins the first one instead of doing it again. */
import { FILES_LIMITS } from './limits.ts';

export class KeptAnswers {
  readonly #answers = new Map<string, { readonly answer: Promise<unknown>; readonly until: number }>();

  /** `key` names the operation and what it is about: another request under the same client key is another operation. */
  once<T>(key: string, nowMs: number, work: () => Promise<T>): Promise<T> {
    this.#forgetOld(nowMs);
    const known = this.#answers.get(key);
    if (known) return known.answer as Promise<T>;
    const answer = work();
    this.#answers.set(key, { answer, until: nowMs + FILES_LIMITS.keptAnswerMs });
    answer.catch(() => this.#answers.delete(key)); // the caller is told, and may try again
    return answer;
  }

  /** Oldest first, as a Map keeps them. */
  #forgetOld(nowMs: number): void {
    for (const [key, { until }] of this.#answers) {
      if (until > nowMs && this.#answers.size < FILES_LIMITS.keptAnswers) return;
      this.#answers.delete(key);
    }
  }
}
