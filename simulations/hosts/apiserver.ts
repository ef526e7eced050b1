/**
 * One apiserver, as `node-runtime/roles/apiserver` is: stateless; turns what clients ask into commands on the queue, the same
 * command for the same key, and reads from the log.
 */
import type { Commit, CommandEnvelope } from '#bus/envelope.ts';
import { toWireError, type WireError, wireError } from '#bus/errors.ts';
import {
  bodyHashOf,
  type ClientKey,
  messageIdOf,
  type JobId,
  type ProjectName,
  parseSandboxId,
  type RequestId,
  requestIdFor,
  type SandboxId,
} from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { GroupMode } from '#bus/request/group.ts';
import type { RequestBusCommand, RequestState } from '#bus/request/schema.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import { SandboxRequest, type SandboxSpec } from '#bus/sandbox/spec.ts';
import { readState } from '#bus/records.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { createLaneSubject, edgeCommandSubject, jobAddress, laneOf, requestAddress, sandboxAddress } from '#bus/subjects.ts';
import { addMs, type DurationMs, type TimestampMs } from '#bus/units.ts';
import { memberOf } from '#actors/job/member.ts';
import type { LifecycleReply } from './edge-commands.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

export type Create = {
  readonly project: ProjectName;
  readonly key: ClientKey;
  readonly count: number;
  readonly spec: SandboxSpec;
  readonly timeoutMs: number;
  readonly mode?: GroupMode;
  readonly job?: JobId;
};
export type Lifecycle = { readonly project: ProjectName; readonly id: SandboxId; readonly command: SandboxBusCommand; readonly key: string };
export type ApiAnswer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: WireError };
export type Decided = { readonly decision: 'accepted' | 'ignored' | 'pending' };

export class SimApiserver {
  readonly process: Process;
  readonly #shardCount: number;
  readonly #laneCount: number;
  readonly #waiting = new Map<string, (reply: LifecycleReply) => void>();
  readonly #inbox: string;
  readonly #principals = new Map<ProjectName, string>();

  constructor(process: Process, shardCount: number, laneCount: number) {
    this.process = process;
    this.#shardCount = shardCount;
    this.#laneCount = laneCount;
    this.#inbox = `inbox.${process.name}.${process.freshId()}`;
    process.bus.subscribe<LifecycleReply>(this.#inbox, process.link, (reply) => this.#waiting.get(reply.commandId)?.(reply));
  }

  kill(): void {
    this.process.kill();
  }

  create(asked: Create, done: (answer: ApiAnswer<{ requestId: RequestId }>) => void): void {
    if (asked.job === undefined) return this.#create(asked, done);
    this.process.log.last(jobAddress(asked.project, asked.job), (answer) => {
      if (!answer.ok) return done(answer);
      if (!answer.value) return done({ ok: false, error: wireError('JOB_NOT_FOUND', `there is no job ${asked.job} in project ${asked.project}`) });
      try {
        this.#create({ ...asked, spec: memberSpec(asked.spec, answer.value.commit, this.process.clock.now()) }, done);
      } catch (thrown) {
        done({ ok: false, error: toWireError(thrown) });
      }
    });
  }

  #create({ project, key, count, spec, timeoutMs, mode = 'asManyAsFit' }: Create, done: (answer: ApiAnswer<{ requestId: RequestId }>) => void): void {
    const requestId = requestIdFor(project, key, this.#shardCount);
    const bodyHash = bodyHashOf({ count, spec, mode });
    const at = this.process.clock.now();
    const deadlineAt = addMs(at, timeoutMs as DurationMs);
    const asked = { project, key, requestId, bodyHash, count, spec, forkedFrom: null, deadlineAt };
    const data: RequestBusCommand = isGroup({ count, mode }) ? { type: 'PlaceGroup', mode, ...asked } : { type: 'PlaceSandboxes', chunkOf: null, ...asked };
    const id = messageIdOf(project, requestId, 'place', bodyHash);
    const envelope: CommandEnvelope = { v: 1, id, at, project, principal: this.#principalOf(project), correlationId: requestId, deadlineAt, data };
    this.#store(createLaneSubject(laneOf(project, this.#laneCount)), envelope, 1, (error) =>
      done(error ? { ok: false, error } : { ok: true, value: { requestId } }),
    );
  }

  lifecycle({ project, id, command, key }: Lifecycle, done: (answer: ApiAnswer<Decided>) => void): void {
    const at = this.process.clock.now();
    const commandId = messageIdOf(project, id, command.type, key);
    const deadlineAt = (at + HOST_LIMITS.commandDeadlineMs) as TimestampMs;
    const principal = this.#principalOf(project);
    const envelope: CommandEnvelope = {
      v: 1,
      id: commandId,
      at,
      project,
      principal,
      correlationId: commandId,
      deadlineAt,
      replyTo: this.#inbox,
      data: command,
    };
    let open = true;
    const answer = (value: ApiAnswer<Decided>) => {
      if (!open) return;
      open = false;
      this.#waiting.delete(commandId);
      done(value);
    };
    this.#waiting.set(commandId, ({ result }) => answer(result.ok ? { ok: true, value: { decision: result.decision } } : { ok: false, error: result.error }));
    this.#store(edgeCommandSubject(parseSandboxId(id).edge, id), envelope, 1, (error) => {
      if (error) answer({ ok: false, error });
      else this.process.after(HOST_LIMITS.decisionWaitMs, 'pending', () => answer({ ok: true, value: { decision: 'pending' } }));
    });
  }

  /** One string for each, however much it asks for. */
  #principalOf(project: ProjectName): string {
    const principal = this.#principals.get(project) ?? `tenant/${project}`;
    this.#principals.set(project, principal);
    return principal;
  }

  request(project: ProjectName, id: RequestId, done: (answer: ApiAnswer<RequestState>) => void): void {
    this.process.log.last(requestAddress(project, id), (answer) => {
      if (!answer.ok) return done(answer);
      const state = answer.value?.commit.state as RequestState | undefined;
      done(state ? { ok: true, value: state } : { ok: false, error: wireError('REQUEST_NOT_FOUND', `there is no request ${id}`) });
    });
  }

  sandbox(project: ProjectName, id: SandboxId, done: (answer: ApiAnswer<SandboxState>) => void): void {
    this.process.log.last(sandboxAddress(project, id), (answer) => {
      if (!answer.ok) return done(answer);
      const state = answer.value?.commit.state as SandboxState | undefined;
      done(state ? { ok: true, value: state } : { ok: false, error: wireError('SANDBOX_NOT_FOUND', `there is no sandbox ${id}`) });
    });
  }

  /** An unknown outcome is repeated with the same id, never with a new one. */
  #store(subject: string, envelope: CommandEnvelope, attempt: number, done: (error: WireError | null) => void): void {
    this.process.queue.send(subject, envelope, (outcome) => {
      if (outcome.outcome === 'applied') return done(null);
      if (outcome.outcome === 'not_applied' || attempt >= HOST_LIMITS.enqueueAttempts) return done(outcome.error);
      this.process.after(HOST_LIMITS.enqueueRetryMs, 'store again', () => this.#store(subject, envelope, attempt + 1, done));
    });
  }
}

/** What does not fit into one message, or has to be decided as a whole. */
const isGroup = ({ count, mode }: { readonly count: number; readonly mode: GroupMode }): boolean =>
  count > WIRE_LIMITS.maxCreatesPerMessage || mode === 'allOrNothing';

/** What membership of a job makes of a spec: its label, and a life that ends with the job's. The rest is what the request said. */
const memberSpec = (spec: SandboxSpec, { state, schema }: Commit, now: TimestampMs): SandboxSpec => {
  const request = SandboxRequest.parse({ image: spec.image, lives: { totalMs: spec.lives.totalMs }, labels: spec.labels });
  const { lives, labels } = memberOf(readState('job', state, schema), request, now);
  return { ...spec, lives: { ...spec.lives, totalMs: lives.totalMs ?? spec.lives.totalMs }, labels };
};
