/**
 * One instance of the jobs role, as `node-runtime/roles/jobs`: each decides for any job, one does its work (the highest hash of both
 * names among those heard lately). Owner leases, policies and goals are decided by `actors/job`.
 */
import type { Shard } from '#bus/ids.ts';
import type { JobCommand, JobEvent, JobState } from '#bus/job/schema.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { JobEffect } from '#actors/job/job.effects.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { ActorRunner, type UnderWay } from './actor-runner.ts';
import { serve } from './ask.ts';
import { SimClient, type SomeApiserver } from './client.ts';
import { start } from './flow.ts';
import { HOST_LIMITS } from './limits.ts';
import { Members } from './members.ts';
import type { Observer } from './observer.ts';
import type { Parts } from './parts.ts';
import { SimPresence } from './presence.ts';
import type { Process } from './process.ts';

export type JobAsk = { readonly address: ActorAddress; readonly command: JobCommand };
export type JobsOptions = {
  readonly process: Process;
  readonly shards: readonly Shard[];
  readonly parts: Parts;
  readonly observer: Observer;
  readonly someApiserver: SomeApiserver;
};
type Deadline = { readonly kind: string; readonly version: number };

export class SimJobs {
  readonly #o: JobsOptions;
  readonly #runner: ActorRunner<JobState, JobCommand, JobEvent, JobEffect>;
  readonly #members: Members;
  #presence!: SimPresence;
  /** Jobs whose work is done here. */
  readonly #held = new Map<string, ActorAddress>();
  #isOpen = false;

  constructor(options: JobsOptions) {
    this.#o = options;
    const { process, parts, observer, shards, someApiserver } = options;
    this.#members = new Members(process, new SimClient(process, someApiserver, HOST_LIMITS.handsCallMs), shards);
    this.#runner = new ActorRunner({
      process,
      definition: parts.job,
      host: parts.host(parts.job),
      runEffect: (effect, under) => this.#move(effect, under),
      deadlineCommand: ({ kind, version }: Deadline): JobCommand => ({ type: 'JobDeadlinePassed', kind: kind as 'owner', version }),
      doesWork: ({ id }) => this.#isOpen && this.#presence.owns(id),
      onAdopted: (_, { address }, over) => (over ? void this.#held.delete(address.id) : this.#hold(address)),
      onReply: (address, result) => observer.replied(address, result),
    });
  }

  /** Answers at once; takes work up when it has heard who else is there. */
  start(): void {
    const { process } = this.#o;
    this.#presence = new SimPresence(process, 'jobs', () => this.#catchUp());
    serve<JobAsk, CommandResult>(process, 'api.job', (asked, answer) => this.#submit(asked, answer));
    process.after(HOST_LIMITS.presenceListenMs, 'jobs open', () => {
      this.#isOpen = true;
      process.bus.subscribe<StoredCommit>('out.kind.job', process.link, (stored) => this.#take(stored));
      this.#catchUp();
      process.every(HOST_LIMITS.catchUpEveryMs, 'jobs catch up', () => this.#catchUp());
    });
  }

  kill(): void {
    this.#o.process.kill();
    this.#runner.close();
  }

  /** Decides here, whoever does the work. What is not this instance's is read anew each time: others write it too. */
  #submit({ address, command }: JobAsk, answer: (result: CommandResult) => void): void {
    const commandId = `${address.project}:${address.id}:${command.type}:${this.#o.process.freshId()}`;
    const meta = { commandId, correlationId: address.id, principal: `tenant/${address.project}`, at: this.#o.process.clock.now() };
    this.#runner.submit(address, command, meta, (result) => {
      answer(result);
      if (!this.#held.has(address.id)) this.#runner.evict(address);
    });
  }

  #move(effect: JobEffect, under: UnderWay<JobState, JobCommand>): void {
    const { goal, goalVersion } = effect;
    start(
      this.#members.move(effect, () => under.stopped),
      (counts) => under.finish(counts ? { ok: true, report: { type: 'ReportMembers', goal, goalVersion, counts } } : { ok: false, error: LOG_AWAY }),
    );
  }

  /** Takes what is owned here now, lets go of what is not. */
  #catchUp(): void {
    if (!this.#isOpen) return;
    for (const [id, address] of this.#held)
      if (!this.#presence.owns(id)) {
        this.#held.delete(id);
        this.#runner.release(address);
      }
    for (const shard of this.#o.shards)
      this.#o.process.log.lastOfEach({ shard, kind: 'job', home: '_' }, (answer) => {
        if (answer.ok) for (const stored of answer.value) this.#take(stored);
      });
  }

  #take(stored: StoredCommit): void {
    const { address, commit, sequence } = stored;
    if (!this.#presence.owns(address.id)) return;
    const known = this.#runner.peek(address);
    if (known && known.stored.sequence >= sequence && this.#held.has(address.id)) return;
    const { job } = this.#o.parts;
    if (!job.isOver(job.parseState(commit.state, commit.schema))) this.#runner.adopt(stored);
  }

  #hold(address: ActorAddress): void {
    if (this.#isOpen && this.#presence.owns(address.id)) this.#held.set(address.id, address);
  }
}

const LOG_AWAY = { code: 'BUS_UNAVAILABLE', message: 'the log does not answer', outcome: 'unknown', retry: 'same', fault: 'infra', details: {} } as const;
