/** Lets episodes wait while their job is paused: one look at the job for however many of them. */
import { DsecError } from '#bus/errors.ts';
import type { JobState } from '#bus/job/schema.ts';
import { type ActorAddress, commitSubject } from '#bus/subjects.ts';
import { JOBS_LIMITS } from './limits.ts';

export class PausedJobs {
  readonly #newest: (address: ActorAddress) => Promise<{ readonly state: JobState } | null>;
  readonly #waits = new Map<string, Promise<void>>();

  constructor(newest: (address: ActorAddress) => Promise<{ readonly state: JobState } | null>) {
    this.#newest = newest;
  }

  /** Resolves at once unless the job is paused or about to be. CANCELLED when the signal aborts. */
  async whenRunning(job: ActorAddress, signal: AbortSignal): Promise<void> {
    const key = commitSubject(job);
    const wait = this.#waits.get(key) ?? this.#watch(job).finally(() => this.#waits.delete(key));
    this.#waits.set(key, wait);
    await Promise.race([wait, aborted(signal)]);
  }

  async #watch(job: ActorAddress): Promise<void> {
    for (;;) {
      const found = await this.#newest(job);
      if (found?.state.status !== 'paused' && found?.state.status !== 'pausing') return;
      await new Promise((resolve) => setTimeout(resolve, JOBS_LIMITS.pausedLookMs));
    }
  }
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const fail = () => reject(DsecError.of('CANCELLED', 'the episode’s work moved elsewhere'));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
