/**
 * A trainer's hold on one job: start rollouts, answer their turns, collect their results. @paper §6.2
 *
 * The trainer keeps nothing that matters: it may die at any moment, and another process that attaches with the job's id alone,
 * on another machine, gets exactly the turns that are open then. Faults are typed, so that what the platform broke is masked
 * instead of being scored.
 */
import { randomBytes } from 'node:crypto';
import type { JobView, RolloutSummary } from '#bus/api/jobs.ts';
import { decodeCommit } from '#bus/envelope.ts';
import { DsecError, type Fault } from '#bus/errors.ts';
import { ClientKey, type JobId, type RolloutId, shardOfJob } from '#bus/ids.ts';
import type { JobSpec } from '#bus/job/schema.ts';
import { readState } from '#bus/records.ts';
import type { RolloutSpec, RolloutState } from '#bus/rollout/schema.ts';
import { outFilter } from '#bus/subjects.ts';
import type { z } from 'zod';
import type { Session } from '../session.ts';
import type { BusMessage } from '../transport/bus.ts';
import { Latch, type WakeReason } from '../transport/latch.ts';
import { translate } from '../transport/retry.ts';
import { TurnInbox } from './inbox.ts';
import { Lease } from './lease.ts';
import { TRAINER_LIMITS } from './limits.ts';
import { type RolloutOrder, startRollouts } from './start-rollouts.ts';
import { type TrajectoryRecord, trajectoryOf } from './trajectory.ts';

export type AttachOptions = {
  /** Names this process in the lease; anything unique. Random when absent. */
  readonly holder?: string | undefined;
  /** Takes the job from a living owner, who is fenced. */
  readonly takeover?: boolean | undefined;
  /** Also wakes a job that was paused while nobody held it. Default true. */
  readonly resume?: boolean | undefined;
};

/** One open turn. */
export type Turn = {
  readonly rolloutId: RolloutId;
  readonly key: string;
  /** Rollouts of one task that are compared with each other. */
  readonly group: string;
  readonly turn: number;
  readonly request: unknown;
  /** Durable when it resolves. The same answer again is harmless; TURN_ANSWERED when another one came first, LEASE_LOST when this trainer was replaced. */
  answer(value: unknown): Promise<void>;
};

/** How an episode ended. `fault` null: it finished. A trainer masks `infra` and `preempted` instead of scoring them. */
export type RolloutResult = {
  readonly rolloutId: RolloutId;
  readonly key: string;
  readonly group: string;
  readonly outcome: RolloutState['outcome'];
  readonly reward: number | null;
  readonly result: unknown;
  readonly exitCode: number | null;
  readonly fault: Fault | null;
  readonly error: RolloutState['error'];
  readonly turns: number;
  readonly steps: number;
};

/** What a list and a commit tell alike. */
type Noted = Pick<RolloutSummary, 'id' | 'version' | 'status' | 'key' | 'group' | 'openTurn'>;

export class Trainer {
  readonly #session: Session;
  readonly #lease: Lease;
  readonly #inbox = new TurnInbox();
  /** Each wakes one of the two iterators. */
  readonly #wake = { turns: new Latch(), results: new Latch() };
  /** Rollouts that have not ended, as far as is known. */
  readonly #living = new Set<RolloutId>();
  readonly #names = new Map<RolloutId, { readonly key: string; readonly group: string }>();
  readonly #stops: readonly (() => void)[];
  readonly #job: JobView;
  #failure: DsecError | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** Attaches to a job that exists. JOB_OWNED while another owner lives, JOB_ENDED when there is nothing left to do. */
  static async attach(session: Session, jobId: string, options: AttachOptions = {}): Promise<Trainer> {
    const holder = options.holder ?? `trainer-${randomBytes(6).toString('hex')}`;
    const request = { id: jobId as JobId, holder, takeover: options.takeover ?? false, resume: options.resume ?? true };
    const { job } = await session.api.call('claimJob', request);
    const trainer = new Trainer(session, job, holder);
    await trainer.#catchUp(true);
    return trainer;
  }

  /** Makes the job, or finds the one of this key, and attaches to it. */
  static async open(session: Session, key: string, spec: z.input<typeof JobSpec> = {}, options: AttachOptions = {}): Promise<Trainer> {
    const { job } = await session.api.call('createJob', { key: ClientKey.parse(key), spec, holder: null });
    return Trainer.attach(session, job.state.id, options);
  }

  private constructor(session: Session, job: JobView, holder: string) {
    const { id, spec } = job.state;
    this.#session = session;
    this.#job = job;
    const onLost = (error: DsecError) => this.#fail(error);
    this.#lease = new Lease({ session, jobId: id, holder, epoch: job.state.epoch, leaseMs: spec.leaseMs, onLost });
    const filter = outFilter({ shard: shardOfJob(id), project: session.project, kind: 'rollout' });
    this.#stops = [
      session.bus.subscribe(
        filter,
        (message) => this.#hear(message),
        (failure) => this.#fail(translate(failure, { what: 'following rollouts', unavailable: 'API_UNAVAILABLE' })),
      ),
      session.bus.onReconnect(() => void this.#catchUpQuietly(true)),
    ];
    this.#timer = setInterval(() => void this.#catchUpQuietly(false), TRAINER_LIMITS.catchUpEveryMs);
  }

  get jobId(): JobId {
    return this.#job.state.id;
  }
  get epoch(): number {
    return this.#lease.epoch;
  }

  /** Starts rollouts, each once per key; those that exist already are left as they are. */
  async start(rollouts: readonly RolloutOrder[]): Promise<RolloutId[]> {
    const ids = await startRollouts(this.#session, this.jobId, rollouts);
    for (const id of ids) if (!this.#inbox.hasEnded(id)) this.#living.add(id);
    return ids;
  }

  /** One task tried `size` times: rollouts that are compared with each other. */
  startGroup(task: string, size: number, spec: z.input<typeof RolloutSpec>): Promise<RolloutId[]> {
    return this.start(Array.from({ length: size }, (_, i) => ({ key: `${task}/${i}`, spec: { ...spec, group: task } })));
  }

  /**
   * Open turns as they come, each once to this trainer. The pace is the consumer's: what it does not take waits where it is, in the
   * rollouts. Ends when every rollout that was started has ended; throws LEASE_LOST when another trainer took the job.
   */
  async *turns(): AsyncGenerator<Turn> {
    for (;;) {
      const place = this.#inbox.takeTurn();
      if (place) {
        const turn = await this.#turnAt(place.id, place.turn, place.request);
        if (turn) yield turn;
      } else if (!(await this.#moreMayCome(this.#wake.turns))) return;
    }
  }

  /** Rollouts of the job that have ended, each once to this trainer, those from before it attached included. */
  async *results(): AsyncGenerator<RolloutResult> {
    for (;;) {
      const id = this.#inbox.takeEnded();
      if (id) yield await this.result(id);
      else if (!(await this.#moreMayCome(this.#wake.results))) return;
    }
  }

  async result(id: RolloutId): Promise<RolloutResult> {
    const { state } = await this.#session.api.call('getRollout', { id });
    const { key, spec, outcome, reward, result, exitCode, error, turns, steps } = state;
    return { rolloutId: id, key, group: spec.group, outcome, reward, result, exitCode, fault: error?.fault ?? null, error, turns, steps };
  }

  trajectory(id: RolloutId): AsyncGenerator<TrajectoryRecord> {
    return trajectoryOf(this.#session, id);
  }

  /** Lets go without giving the job back: its policy acts when nobody comes. */
  async detach(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const stop of this.#stops) stop();
    await this.#lease.close();
    this.#wakeBoth('done');
  }

  /** Ends the job with everything in it. */
  async stopJob(): Promise<void> {
    await this.#session.api.call('stopJob', { id: this.jobId });
    await this.detach();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.detach();
  }

  /** False when nothing can come any more. */
  async #moreMayCome(wake: Latch): Promise<boolean> {
    if (this.#failure) throw this.#failure;
    if (this.#isClosed || this.#living.size === 0) return false;
    await wake.wait(TRAINER_LIMITS.catchUpEveryMs);
    if (this.#failure) throw this.#failure;
    return !this.#isClosed;
  }

  async #turnAt(id: RolloutId, turn: number, held: { readonly value: unknown } | undefined): Promise<Turn | undefined> {
    const { state } = held ? { state: undefined } : await this.#session.api.call('getRollout', { id });
    if (state && (state.status !== 'asking' || state.open?.turn !== turn)) return undefined; // answered meanwhile, or ended
    const { key, group } = this.#names.get(id) ?? { key: state?.key ?? '', group: state?.spec.group ?? '' };
    return {
      rolloutId: id,
      key,
      group,
      turn,
      request: held ? held.value : state?.open?.request,
      answer: async (value) => {
        await this.#session.api.call('answerTurn', { id, turn, answer: value ?? null, epoch: this.epoch });
      },
    };
  }

  #hear(message: BusMessage): void {
    if (message.data.byteLength === 0) return; // the tombstone of a forgotten rollout
    try {
      const { version, state: raw, schema } = decodeCommit(message.data);
      if ((raw as { jobId?: unknown }).jobId !== this.jobId) return;
      this.#learn(version, readState('rollout', raw, schema));
    } catch (thrown) {
      this.#fail(thrown instanceof DsecError ? thrown : DsecError.of('INTERNAL', String(thrown)));
    }
  }

  #learn(version: number, { id, key, status, spec, open }: RolloutState): void {
    this.#note({ id, version, status, key, group: spec.group, openTurn: open?.turn ?? null }, { value: open?.request });
  }

  /** `requests`: with what open turns ask, so that they need not be fetched one by one; not when hardly any will be news. */
  async #catchUp(requests: boolean): Promise<void> {
    for (let after: string | null | undefined; after !== null; ) {
      const request = { jobId: this.jobId, limit: TRAINER_LIMITS.rolloutsPage, requests };
      const page = await this.#session.api.call('listRollouts', after === undefined ? request : { ...request, after });
      for (const summary of page.rollouts) this.#note(summary, summary.openRequest);
      after = page.next;
    }
  }

  #note({ id, version, status, key, group, openTurn }: Noted, request?: { readonly value: unknown }): void {
    this.#names.set(id, { key, group });
    if (status === 'ended') {
      this.#living.delete(id);
      this.#inbox.ended(id, version);
      this.#wakeBoth('news');
      return;
    }
    if (!this.#inbox.hasEnded(id)) this.#living.add(id);
    if (status !== 'asking' || openTurn === null) this.#inbox.moved(id, version);
    else if (this.#inbox.opened({ id, version, turn: openTurn, ...(request ? { request } : {}) })) this.#wake.turns.open('news');
  }

  /** A list that fails is asked for again; what it would have shown is not lost. */
  async #catchUpQuietly(requests: boolean): Promise<void> {
    try {
      await this.#catchUp(requests);
    } catch (thrown) {
      if (thrown instanceof DsecError && thrown.retry !== 'never') return;
      this.#fail(thrown instanceof DsecError ? thrown : DsecError.of('INTERNAL', String(thrown)));
    }
  }

  #fail(error: DsecError): void {
    this.#failure ??= error;
    this.#wakeBoth('failed');
  }

  #wakeBoth(reason: WakeReason): void {
    this.#wake.turns.open(reason);
    this.#wake.results.open(reason);
  }
}
