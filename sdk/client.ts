/** The client: connects to a platform and makes, finds and lists sandboxes of one project. @paper §2.1 */
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { SandboxId, SnapshotId } from '#bus/ids.ts';
import type { SnapshotView } from '#bus/sandbox/snapshot.ts';
import type { SandboxStatus } from '#bus/sandbox/state.ts';
import { Admin } from './admin.ts';
import { type ContextOptions, resolveContext } from './context.ts';
import { type GroupOptions, runAsked, runMany, runOne } from './create/run.ts';
import type { Command } from './exec/command.ts';
import type { Group } from './group.ts';
import { SDK_LIMITS } from './limits.ts';
import type { RunOptions, WaitOptions } from './run-options.ts';
import { type Chosen, type ManyOptions, type ManyResult, toMany } from './many.ts';
import { Sandbox } from './sandbox.ts';
import { Session } from './session.ts';
import { listSnapshots } from './snapshot.ts';
import { type JobOptions, Jobs } from './trainer/jobs.ts';
import { type AttachOptions, Trainer } from './trainer/trainer.ts';
import { systemClock } from './transport/clock.ts';
import { connectBus } from './transport/nats-bus.ts';
import type { WaitListener } from './transport/waits.ts';
import { type SandboxChange, type WatchOptions, watchSandboxes } from './watch.ts';

export type ConnectOptions = ContextOptions & {
  /** How long to wait for a platform that is starting. Milliseconds, default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Shown in the bus's own list of clients. */
  readonly name?: string | undefined;
  /**
   * Told within seconds, and every ten seconds, that calls wait for a sandbox or an apiserver that does not answer, and when that is over. The calls
   * themselves go on: an Edge that restarts answers them, and each is done once. They fail after a minute, or when their `signal` aborts.
   */
  readonly onWait?: WaitListener | undefined;
};
/** What the new sandbox does not take over from the lost one. */
export type RecoverOptions = Partial<Omit<RunOptions, 'image' | 'backend' | 'workspaces' | 'toolkits'>> & WaitOptions;
export type ListOptions = {
  /** Every one of these labels with this value. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly status?: SandboxStatus | readonly SandboxStatus[] | undefined;
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
};

/** Connects and checks that an apiserver answers. The connection is reopened for ever until `close`. */
export const connect = async (options: ConnectOptions = {}): Promise<DsecClient> => {
  const context = resolveContext(options);
  const timeoutMs = options.timeoutMs ?? SDK_LIMITS.connectTimeoutMs;
  const bus = await connectBus(context, { name: options.name ?? 'dsec-sdk', timeoutMs });
  const session = new Session(bus, context.project, systemClock, options.onWait);
  session.makeForks = (order, wait) => runAsked(session, order, wait);
  try {
    await session.shardCount({ giveUpAfterMs: timeoutMs });
  } catch (thrown) {
    await bus.close();
    throw thrown instanceof DsecError && thrown.code === 'FORBIDDEN' ? notOurs(context.project, thrown) : thrown;
  }
  return new DsecClient(session, context.servers);
};

const notOurs = (project: string, cause: DsecError): DsecError =>
  DsecError.of(
    'FORBIDDEN',
    `project ${project}: these credentials may not work in it; name another with --project or \`project\`, or use its own context file`,
    {
      cause,
    },
  );

export class DsecClient {
  readonly #session: Session;
  /** Projects, principals, rights and quotas. */
  readonly admin: Admin;

  constructor(session: Session, servers: readonly string[] = []) {
    this.#session = session;
    this.admin = new Admin(session, servers);
  }

  get project(): string {
    return this.#session.project;
  }

  /** Makes a sandbox and waits until it runs. With a `key`, repeating the call never makes a second one. */
  async runContainer(options: RunOptions, wait: WaitOptions = {}): Promise<Sandbox> {
    return runOne(this.#session, options, wait);
  }

  /**
   * Makes `count` equal sandboxes and waits until each runs or has failed; what became of each is in the group's items.
   * Throws when the platform refused the create as a whole.
   */
  async runContainers(options: RunOptions, wait: GroupOptions): Promise<Group> {
    return runMany(this.#session, options, wait);
  }

  /**
   * Makes a sandbox in the place of one that was lost: from its newest snapshot, else its image, with its settings where the options
   * say nothing else. Commands with the lost one's keys and bodies are answered from its record, `result.replayed` says so, up to the
   * first that is not recorded; from then on everything runs. Repeating the call gives the same sandbox. @paper §6.2
   *
   * INVALID_STATE while the sandbox lives, SANDBOX_NOT_FOUND. Only sandboxes made with `recordCommands`, or in a job that has it, have a record.
   */
  async recover(lostId: string, options: RecoverOptions = {}): Promise<Sandbox> {
    const recover = this.sandbox(lostId).id;
    const { timeoutMs, signal, ...own } = options;
    return runOne(this.#session, { key: `recover/${recover}`, ...own, image: { recover } } as RunOptions, { timeoutMs, signal });
  }

  /** SANDBOX_NOT_FOUND when the project has no such sandbox. */
  async get(id: string): Promise<Sandbox> {
    const sandbox = this.sandbox(id);
    await sandbox.refresh();
    return sandbox;
  }

  /** A handle without asking whether the sandbox exists. */
  sandbox(id: string): Sandbox {
    const parsed = SandboxId.safeParse(id);
    if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'sandbox', parsed.error);
    return new Sandbox(this.#session, parsed.data);
  }

  attach(sandboxId: string, execId: string): Command {
    return this.sandbox(sandboxId).attach(execId);
  }

  /** The project's sandboxes in the order of their ids, this client's own newest writes included. */
  async *list(options: ListOptions = {}): AsyncGenerator<Sandbox> {
    const statuses = options.status === undefined ? [] : [options.status].flat();
    const request = { labels: { ...options.labels }, statuses: statuses as SandboxStatus[], limit: options.pageSize ?? 100, atLeast: this.#session.seen };
    for (let after: string | null | undefined; after !== null; ) {
      const page = await this.#session.api.call('list', after === undefined ? request : { ...request, after }, { signal: options.signal });
      for (const view of page.sandboxes) yield new Sandbox(this.#session, view.state.id, view.state);
      after = page.next;
    }
  }

  /** Every change of the project's sandboxes from now on, each once; begins with those that are there. */
  watch(options: WatchOptions = {}): AsyncGenerator<SandboxChange> {
    return watchSandboxes(this.#session, options);
  }

  /**
   * Pauses a whole set and tells of each when it rests, or why it does not: `for await (const { id, error } of dsec.pauseMany({ labels: { job } }))`.
   * Without labels, `{ labels: {} }`: every sandbox of the project that runs.
   */
  pauseMany(chosen: Chosen, options: ManyOptions = {}): AsyncGenerator<ManyResult> {
    return toMany(this.#session, 'pauseMany', chosen, options);
  }

  /** Lets a whole set go on, as `pauseMany`; of those with the labels, the ones that are paused or on the way to it. */
  resumeMany(chosen: Chosen, options: ManyOptions = {}): AsyncGenerator<ManyResult> {
    return toMany(this.#session, 'resumeMany', chosen, options);
  }

  /** The project's snapshots in the order of their ids, or those of one sandbox. */
  snapshots(options: { readonly sandboxId?: string | undefined } = {}): AsyncGenerator<SnapshotView> {
    return listSnapshots(this.#session, options);
  }

  /** Takes a snapshot's name away; sandboxes that stand on it go on. False when there was none. */
  async deleteSnapshot(id: string): Promise<boolean> {
    const parsed = SnapshotId.safeParse(id);
    if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'snapshot', parsed.error);
    return (await this.#session.api.call('deleteSnapshot', { snapshotId: parsed.data })).deleted;
  }

  /** Attaches a trainer to a job by its id alone; JOB_OWNED while another owner lives. @paper §6.2 */
  attachJob(jobId: string, options: AttachOptions = {}): Promise<Trainer> {
    return Trainer.attach(this.#session, jobId, options);
  }

  /** Makes the job of this key, or finds it, and attaches a trainer to it. */
  openJob(key: string, spec: JobOptions = {}, options: AttachOptions = {}): Promise<Trainer> {
    return Trainer.open(this.#session, key, spec, options);
  }

  /** Jobs without attaching to them: make, look, pause, resume, stop. */
  get jobs(): Jobs {
    return new Jobs(this.#session);
  }

  /** Ends the connection; sandboxes and their commands go on. */
  async close(): Promise<void> {
    await this.#session.bus.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
