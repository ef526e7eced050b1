/**
 * Serves a worker's requests, one after another, from where the episode's state stands until it asks a new turn or ends.
 *
 * What is done here is found again after a crash: the state says how far both streams were served, steps carry keys, answers are
 * written at their own offset. A worker that was made anew begins from nothing and is given the recorded answers; when it asks
 * something else than its predecessor did, the episode cannot be gone on with (REPLAY_DIVERGED). @paper §6.2
 */
import { DsecError, wireError } from '#bus/errors.ts';
import { bodyHashOf, type ExecId, type SandboxId } from '#bus/ids.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { ROLLOUT_LIMITS } from '#bus/limits.ts';
import type { RolloutCommand, RolloutEvent, RolloutState, Served, StepRecord } from '#bus/rollout/schema.ts';
import { type PlatformLine, type StepRequest, WORKER_LINE_BYTES, WorkerLine } from '#bus/rollout/worker-protocol.ts';
import { Command } from '../exec/command.ts';
import type { ExecEnd } from '../exec/exec-result.ts';
import { StdinWriter } from '../exec/stdin-writer.ts';
import { Sandbox } from '../sandbox.ts';
import type { Session } from '../session.ts';
import { EPISODE_LIMITS } from './limits.ts';
import { linesOf } from './lines.ts';
import { type Done, failedStep, runStep, unknownRole } from './steps.ts';
import { makeSandbox, workerEnded } from './worker.ts';

type Report = Extract<RolloutCommand, { type: `Report${string}` }>;
export type EpisodeToServe = {
  readonly state: RolloutState;
  readonly report: (report: Report) => Promise<RolloutState>;
  readonly history: () => AsyncIterable<RolloutEvent>;
  readonly whenJobRuns: () => Promise<void>;
  readonly signal: AbortSignal;
};
type RecordedTurn = { requestHash: string; answer: unknown; isAnswered: boolean };

export const serveWorker = (session: Session, episode: EpisodeToServe): Promise<Report> => new Service(session, episode).run();

class Service {
  readonly #session: Session;
  readonly #episode: EpisodeToServe;
  readonly #command: Command;
  readonly #stdin: StdinWriter;
  #state: RolloutState;
  #served: Served;
  /** Turns and steps of this worker so far. */
  #turn: number;
  #step: number;
  /** Steps that the trajectory does not hold yet. */
  #steps: StepRecord[] = [];
  #recorded: Map<number, RecordedTurn> | undefined;
  #result: { reward: number | null; result: unknown } | undefined;

  constructor(session: Session, episode: EpisodeToServe) {
    const { state, signal } = episode;
    const [worker, execId] = [state.worker as SandboxId, state.execId as ExecId];
    this.#session = session;
    this.#episode = episode;
    this.#state = state;
    this.#served = state.served;
    const isNew = state.served.stdoutBytes === 0;
    this.#turn = isNew ? 0 : state.turns;
    this.#step = isNew ? 0 : state.steps;
    this.#command = new Command(session, worker, execId);
    this.#stdin = new StdinWriter({ ops: session.ops, clock: session.clock, sandboxId: worker, execId, signal, offset: state.served.stdinBytes });
  }

  async run(): Promise<Report> {
    try {
      if (this.#served.stdinBytes === 0) await this.#tell(this.#startLine());
      const { stdoutBytes } = this.#served;
      for await (const { text, endOffset } of linesOf(this.#command.stdout.with({ offset: stdoutBytes }), stdoutBytes, WORKER_LINE_BYTES)) {
        const report = await this.#serve(text, endOffset);
        if (report) return report;
      }
      return this.#ended(await this.#command.wait({ signal: this.#episode.signal }));
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || thrown.code === 'CANCELLED' || this.#episode.signal.aborted) throw thrown;
      // Another worker would be asked to repeat what this one could not.
      if (thrown.code === 'REPLAY_DIVERGED') return { ...workerEnded(this.#state, thrown.toWire()), lost: false };
      // What a repetition may still bring about is tried again; a worker that is gone, or is not to be understood, is reported.
      if (thrown.retry === 'same' || thrown.outcome === 'unknown') throw thrown;
      return workerEnded(this.#state, thrown.toWire());
    }
  }

  /** One line of the worker. Chatter that is no JSON object is left alone. */
  async #serve(text: string, endOffset: number): Promise<Report | undefined> {
    if (!text.startsWith('{')) return this.#passed(endOffset);
    const line = WorkerLine.safeParse(jsonOrUndefined(text));
    if (!line.success) {
      const message = `not understood: ${line.error.issues[0]?.message ?? 'no JSON'}; a worker sends exec, turn, snapshot or result`;
      await this.#tell({ type: 'refused', error: wireError('INVALID_ARGUMENT', message) });
      return this.#passed(endOffset);
    }
    switch (line.data.type) {
      case 'turn':
        return this.#turnAsked(line.data.request, endOffset);
      case 'exec':
        await this.#tell(await this.#stepDone(line.data));
        break;
      case 'snapshot':
        await this.#tell(await this.#snapshot(line.data.sandbox));
        break;
      case 'result':
        this.#result = { reward: line.data.reward, result: line.data.result ?? null };
        break;
    }
    this.#passed(endOffset);
    if (this.#steps.length >= ROLLOUT_LIMITS.stepsPerCommit && !this.#isReplaying && !this.#result) await this.#recordSteps();
    return undefined;
  }

  #passed(stdoutBytes: number): undefined {
    this.#served = { ...this.#served, stdoutBytes };
  }

  get #isReplaying(): boolean {
    return this.#turn < this.#state.turns;
  }

  async #turnAsked(request: unknown, endOffset: number): Promise<Report | undefined> {
    const turn = this.#turn;
    const requestHash = bodyHashOf(request ?? null);
    this.#passed(endOffset);
    if (!this.#isReplaying) {
      const { attempt } = this.#state;
      return { type: 'ReportAsked', attempt, turn, request: request ?? null, requestHash, steps: this.#steps, served: this.#served };
    }
    const recorded = (await this.#record()).get(turn);
    if (!recorded?.isAnswered || recorded.requestHash !== requestHash)
      throw DsecError.of('REPLAY_DIVERGED', `the new worker of ${this.#state.id} asked another turn ${turn} than the lost one; start the episode again`);
    await this.#tell({ type: 'answer', turn, answer: recorded.answer });
    this.#turn += 1;
    return undefined;
  }

  async #record(): Promise<Map<number, RecordedTurn>> {
    if (this.#recorded) return this.#recorded;
    const turns = new Map<number, RecordedTurn>();
    for await (const event of this.#episode.history()) {
      if (event.type === 'TurnAsked') turns.set(event.turn, { requestHash: event.requestHash, answer: null, isAnswered: false });
      const asked = event.type === 'TurnAnswered' ? turns.get(event.turn) : undefined;
      if (asked && event.type === 'TurnAnswered') Object.assign(asked, { answer: event.answer, isAnswered: true });
    }
    this.#recorded = turns;
    return turns;
  }

  async #stepDone(request: StepRequest): Promise<Done> {
    const step = this.#step++;
    const sandboxId = this.#state.sandboxes[request.sandbox];
    if (!sandboxId) return failedStep(step, unknownRole(request.sandbox, this.#state));
    await this.#episode.whenJobRuns();
    try {
      return await this.#run(step, sandboxId, request);
    } catch (thrown) {
      if (!isLoss(thrown) || this.#state.spec.onSandboxLost === 'fail') throw thrown;
      const restored = await this.#restore(request.sandbox, sandboxId);
      return { ...(await this.#run(step, restored.sandboxId, request)), restored: { snapshot: restored.snapshot } };
    }
  }

  async #run(step: number, sandboxId: SandboxId, request: StepRequest): Promise<Done> {
    const { done, record } = await runStep(this.#session, { state: this.#state, step, sandboxId }, request, this.#episode.signal);
    if (step >= this.#state.steps) this.#steps.push(record);
    return done;
  }

  /** A new sandbox in the place of a lost one, from its newest snapshot when there is one; it answers recorded steps from the record. */
  async #restore(role: string, lost: SandboxId): Promise<{ sandboxId: SandboxId; snapshot: string | null }> {
    const request = this.#state.spec.sandboxes[role];
    if (!request) throw DsecError.of('INTERNAL', `role ${role} of ${this.#state.id} is not in its spec`);
    const from = { ...request, image: { recover: lost }, workspaces: [], toolkits: [] };
    const sandboxId = await makeSandbox(this.#session, this.#state, role, lost, from, this.#episode.signal);
    this.#state = await this.#episode.report({ type: 'ReportReplaced', role, lost, sandboxId });
    const { spec } = await new Sandbox(this.#session, sandboxId).refresh();
    return { sandboxId, snapshot: spec.recoveredFrom?.snapshot?.id ?? null };
  }

  async #snapshot(role: string): Promise<PlatformLine> {
    const sandboxId = this.#state.sandboxes[role];
    if (!sandboxId) return { type: 'snapshotted', layer: null, error: unknownRole(role, this.#state) };
    try {
      const snapshotId = `ro-${bodyHashOf({ id: this.#state.id, at: this.#served.stdoutBytes }).slice(0, 20)}`;
      const { layer } = await new Sandbox(this.#session, sandboxId).snapshot({ snapshotId, timeoutMs: EPISODE_LIMITS.snapshotTimeoutMs });
      return { type: 'snapshotted', layer, error: null };
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || thrown.retry === 'same' || thrown.outcome === 'unknown') throw thrown;
      return { type: 'snapshotted', layer: null, error: thrown.toWire() };
    }
  }

  async #recordSteps(): Promise<void> {
    const { attempt } = this.#state;
    this.#state = await this.#episode.report({ type: 'ReportSteps', attempt, steps: this.#steps, served: this.#served });
    this.#steps = [];
  }

  #ended(end: ExecEnd): Report {
    const { attempt } = this.#state;
    if (this.#result) {
      const steps = this.#steps.slice(-ROLLOUT_LIMITS.stepsPerCommit);
      return { type: 'ReportFinished', attempt, ...this.#result, exitCode: end.exitCode, steps, served: this.#served };
    }
    if (end.reason === 'sandbox_died' || end.reason === 'infra')
      return workerEnded(this.#state, wireError('SANDBOX_LOST', 'the worker’s sandbox died under it'));
    const how = end.signal ? `died of SIG${end.signal}` : `ended with ${end.exitCode}`;
    return workerEnded(
      this.#state,
      wireError('SANDBOX_FAILED', `the worker ${how} (${end.reason}) and said no result; read its stderr: dsec logs`, { fault: 'environment' }),
    );
  }

  #startLine(): PlatformLine {
    const { id, attempt, spec } = this.#state;
    return { type: 'start', rollout: id, attempt, task: spec.task ?? null, sandboxes: Object.keys(spec.sandboxes) };
  }

  async #tell(line: PlatformLine): Promise<void> {
    const bytes = lineBytes(line);
    await this.#stdin.write(bytes);
    this.#served = { ...this.#served, stdinBytes: this.#served.stdinBytes + bytes.byteLength };
  }
}

export const lineBytes = (line: PlatformLine): Uint8Array => Buffer.from(`${JSON.stringify(line)}\n`, 'utf8');

/** The sandbox itself is gone, through no fault of the episode's. */
export const isLoss = (thrown: unknown): thrown is DsecError =>
  thrown instanceof DsecError && ['SANDBOX_LOST', 'SANDBOX_ENDED', 'SANDBOX_FAILED', 'SANDBOX_NOT_FOUND'].includes(thrown.code);
