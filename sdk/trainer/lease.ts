/** Holds a job's lease: renews it in good time, and tells when it is lost. Time is this process's own, from before each request. */
import { DsecError } from '#bus/errors.ts';
import type { JobId } from '#bus/ids.ts';
import type { Session } from '../session.ts';
import { TRAINER_LIMITS } from './limits.ts';

export type LeaseOptions = {
  readonly session: Session;
  readonly jobId: JobId;
  readonly holder: string;
  readonly epoch: number;
  readonly leaseMs: number;
  readonly onLost: (error: DsecError) => void;
};

export class Lease {
  readonly #o: LeaseOptions;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(options: LeaseOptions) {
    this.#o = options;
    this.#done = this.#keep();
  }

  get epoch(): number {
    return this.#o.epoch;
  }

  /** Stops renewing; does not give the lease back. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #keep(): Promise<void> {
    const { session, leaseMs, onLost } = this.#o;
    const everyMs = leaseMs / TRAINER_LIMITS.renewalsPerLease;
    let endsAt = session.clock.now() + leaseMs;
    while (!this.#stop.signal.aborted) {
      try {
        await session.clock.sleep(everyMs, this.#stop.signal);
        const askedAt = session.clock.now();
        await this.#renew(everyMs);
        endsAt = askedAt + leaseMs;
      } catch (thrown) {
        if (this.#stop.signal.aborted) return;
        const error = thrown instanceof DsecError ? thrown : DsecError.of('INTERNAL', String(thrown));
        const isOver = error.code === 'LEASE_LOST' || error.code === 'JOB_ENDED' || error.code === 'JOB_NOT_FOUND';
        if (isOver || session.clock.now() >= endsAt)
          return onLost(
            isOver ? error : DsecError.of('LEASE_LOST', `the lease of ${this.#o.jobId} could not be renewed in time; attach again`, { cause: error }),
          );
      }
    }
  }

  async #renew(giveUpAfterMs: number): Promise<void> {
    const { session, jobId, holder, epoch } = this.#o;
    await session.api.call('renewJob', { id: jobId, holder, epoch }, { giveUpAfterMs, signal: this.#stop.signal });
  }
}
