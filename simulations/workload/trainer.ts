/**
 * The owner of a job: creates it, holds its lease under a name of its own, asks for its members, and may be preempted: then it is gone
 * without a word, and comes back as another process that claims the job again, or never does.
 */
import { bodyHashOf, type ClientKey, type JobId, jobIdFor } from '#bus/ids.ts';
import { JobSpec, type JobCommand, type OwnerLostPolicy } from '#bus/job/schema.ts';
import { jobAddress } from '#bus/subjects.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { Cluster } from '../cluster.ts';
import { Asker } from '../hosts/ask.ts';
import { Process } from '../hosts/process.ts';
import type { Random } from '../kernel/random.ts';
import { TENANT_LIMITS } from './limits.ts';
import type { GroupPlan, Tenant } from './tenant.ts';

export type JobPlan = {
  readonly key: ClientKey;
  readonly lifeMs: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly onOwnerLost: OwnerLostPolicy;
  readonly groups: readonly GroupPlan[];
};

export class Trainer {
  readonly #cluster: Cluster;
  readonly #tenant: Tenant;
  readonly #plan: JobPlan;
  readonly #random: Random;
  readonly id: JobId;
  #lives = 0;
  #process!: Process;
  #asker!: Asker;
  #epoch = 0;
  #over = false;
  #isAskedFor = false;

  constructor(cluster: Cluster, tenant: Tenant, plan: JobPlan, random: Random) {
    this.#cluster = cluster;
    this.#tenant = tenant;
    this.#plan = plan;
    this.#random = random;
    this.id = jobIdFor(tenant.project, plan.key, cluster.o.shards);
    this.#begin();
  }

  start(): void {
    this.#isAskedFor = true;
    const { key, lifeMs, leaseMs, graceMs, onOwnerLost, groups } = this.#plan;
    const spec = JobSpec.parse({ lifeMs, leaseMs, graceMs, onOwnerLost });
    this.#ask({ type: 'CreateJob', key, bodyHash: bodyHashOf({ spec }), spec, holder: this.#holder }, (result) => {
      if (!result.ok) return;
      this.#epoch = 1;
      this.#renewNow(); // whether the creation was the first, or a repetition, it is the holder's
      for (const group of groups) this.#tenant.create({ ...group, job: this.id });
    });
  }

  /** Gone in the middle of whatever it did. Its sandboxes go on until the job's policy says otherwise. */
  preempt(): void {
    this.#process.kill();
  }

  /** Another process, which knows the job's id alone. */
  comeBack(): void {
    if (this.#over) return;
    this.#begin();
    this.#claim();
  }

  /** The job is to end, and everything in it. Asked until somebody has decided it: what was asked for may come to be later than this. */
  stop(): void {
    this.#over = true;
    if (!this.#process.alive) this.#begin();
    this.#ask({ type: 'StopJob' }, (result) => {
      if (!result.ok && result.error.code === 'JOB_NOT_FOUND' && this.#isAskedFor)
        this.#process.after(TENANT_LIMITS.endAgainMs, 'stop again', () => this.stop());
    });
  }

  get #holder(): string {
    return `${this.#tenant.project}-${this.#lives}`;
  }

  #begin(): void {
    this.#lives += 1;
    const { ground } = this.#cluster;
    const { link, clock } = this.#tenant.process;
    this.#process = new Process(`trainer-${this.id}`, ground, this.#random.child(`life ${this.#lives}`), link.quality, clock.fault);
    this.#asker = new Asker(this.#process);
  }

  #claim(): void {
    this.#ask({ type: 'ClaimJob', holder: this.#holder, takeover: false, resume: true }, (result) => {
      if (result.ok && result.decision === 'accepted') this.#epoch = (result.commit.state as { epoch?: number }).epoch ?? 0;
      if (result.ok) return this.#renewNow();
      if (result.error.code === 'JOB_OWNED') this.#process.after(TENANT_LIMITS.endAgainMs, 'claim again', () => this.#claim());
    });
  }

  #renewNow(): void {
    if (this.#over) return;
    this.#process.after(this.#plan.leaseMs / TENANT_LIMITS.renewalsPerLease, 'renew job', () => {
      this.#ask({ type: 'RenewJobLease', holder: this.#holder, epoch: this.#epoch }, (result) => {
        if (result.ok) this.#renewNow();
        else if (result.error.code === 'LEASE_LOST') this.#claim();
      });
    });
  }

  /** Goals, or what makes a repetition harmless: asked again until there is an answer for good. */
  #ask(command: JobCommand, done: (result: CommandResult) => void): void {
    const asked = { address: jobAddress(this.#tenant.project, this.id), command };
    this.#asker.ask<CommandResult>('api.job', asked, TENANT_LIMITS.callMs, (result) => {
      if (result && (result.ok || result.error.retry === 'never' || ANSWERS.has(result.error.code))) done(result);
      else this.#process.after(TENANT_LIMITS.repeatMs, 'ask again', () => this.#ask(command, done));
    });
  }
}

const ANSWERS: ReadonlySet<string> = new Set(['JOB_OWNED', 'LEASE_LOST', 'JOB_ENDED', 'JOB_NOT_FOUND']);
