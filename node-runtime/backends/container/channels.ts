/**
 * Channels to what lives: for each sandbox the connection to its agent and the services that speak through it, made once and made anew
 * when it breaks; and readers of what ended sandboxes left.
 *
 * Tells the agent when the sandbox's life ends at the latest. Does not start or end sandboxes.
 */
import { existsSync } from 'node:fs';
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { EXPIRY_REASONS, type SandboxState } from '#bus/sandbox/state.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import { Chronus } from '../../chronus/chronus.ts';
import { FileService } from '../../files/service.ts';
import { SessionBudget } from '../../files/sessions.ts';
import type { Log } from '../../log/log.ts';
import { PortService } from '../../ports/service.ts';
import { cpuHints } from './hints.ts';
import { CONTAINER_LIMITS } from './limits.ts';
import { type SandboxDirs, sandboxPaths } from './paths.ts';

export type ChannelsOptions = SandboxDirs & {
  /** How long output of ended commands is kept. */
  readonly outputRetentionMs: number;
  /** Where commands of sandboxes that ask for it are recorded. */
  readonly records: CommandRecords;
  readonly clock: Clock;
  readonly log: Log;
};

export type Live = {
  readonly chronus: Chronus;
  readonly files: FileService;
  readonly ports: PortService;
  readonly gone: Promise<WireError>;
  activityAt: number;
  hardEndAt: number;
};

export const isLive = (attached: Live | WireError | undefined): attached is Live => attached !== undefined && 'gone' in attached;

export class Channels {
  readonly #o: ChannelsOptions;
  readonly #live = new Map<SandboxId, Live>();
  /** Newest state of each sandbox that is not over. */
  readonly #states = new Map<SandboxId, SandboxState>();
  readonly #attaching = new Map<SandboxId, Promise<Live | WireError>>();
  readonly #fileSessions = new SessionBudget();

  constructor(options: ChannelsOptions) {
    this.#o = options;
  }

  /** A new total life is told to the agent, which would end the sandbox at the old one. */
  follow(sandbox: SandboxState): void {
    this.#states.set(sandbox.id, sandbox);
    const live = this.#live.get(sandbox.id);
    if (live && live.hardEndAt !== hardEndOf(sandbox)) void this.#setHardEnd(live, sandbox);
  }

  stateOf(id: SandboxId): SandboxState | undefined {
    return this.#states.get(id);
  }

  forgetState(id: SandboxId): void {
    this.#states.delete(id);
  }

  attach(sandbox: SandboxState): Promise<Live | WireError> {
    const live = this.#live.get(sandbox.id);
    if (live) return Promise.resolve(live);
    const running = this.#attaching.get(sandbox.id) ?? this.#connect(sandbox).finally(() => this.#attaching.delete(sandbox.id));
    this.#attaching.set(sandbox.id, running);
    return running;
  }

  async attached(sandbox: SandboxState): Promise<Live> {
    const attached = await this.attach(sandbox);
    if (!isLive(attached)) throw new DsecError(attached);
    return attached;
  }

  /** Of a live sandbox, waiting for a channel that is just being made; undefined when there is none. */
  async get(id: SandboxId): Promise<Live | undefined> {
    const attached = this.#live.get(id) ?? (await this.#attaching.get(id));
    return isLive(attached) ? attached : undefined;
  }

  /** The channel broke; one that has been made meanwhile stays. */
  drop(id: SandboxId, live: Live): void {
    live.files.close();
    live.ports.close();
    if (this.#live.get(id) === live) this.#live.delete(id);
  }

  /** The sandbox is being ended: that its agent goes away is no news. */
  ending(id: SandboxId): void {
    this.#live.get(id)?.chronus.ending();
  }

  /** The sandbox is over, and so is what its commands waited for. */
  end(id: SandboxId): void {
    const live = this.#live.get(id);
    live?.chronus.end();
    if (live) this.drop(id, live);
  }

  /** Newest command activity: now while somebody waits for a command, 0 when nothing is known since this process started. */
  activityAt(id: SandboxId): number {
    const live = this.#live.get(id);
    if (!live) return 0;
    return live.chronus.isAttended ? this.#o.clock.now() : live.activityAt;
  }

  /** Reads what an ended sandbox left, while its logs are kept. */
  ended(sandbox: SandboxState): Chronus | undefined {
    return existsSync(sandboxPaths(this.#o, sandbox.id).exec) ? this.#newChronus(sandbox, idle, idle) : undefined;
  }

  secondsToHardEnd(sandbox: SandboxState): number {
    return this.#secondsTo(hardEndOf(sandbox));
  }

  close(): void {
    for (const { chronus, files, ports } of this.#live.values()) {
      chronus.close();
      files.close();
      ports.close();
    }
    this.#live.clear();
  }

  async #connect(sandbox: SandboxState): Promise<Live | WireError> {
    let lost = (_: WireError) => {};
    const gone = new Promise<WireError>((resolve) => {
      lost = resolve;
    });
    let live: Live | undefined;
    const onActivity = (): void => {
      if (live) live.activityAt = this.#o.clock.now();
    };
    const chronus = this.#newChronus(sandbox, onActivity, () => lost(goneError(sandbox)));
    if (!(await chronus.attach())) return goneError(sandbox);
    const ports = new PortService({ socketPath: sandboxPaths(this.#o, sandbox.id).socket, clock: this.#o.clock, onActivity });
    live = { chronus, files: this.#newFiles(sandbox, onActivity), ports, gone, activityAt: this.#o.clock.now(), hardEndAt: 0 };
    this.#live.set(sandbox.id, live);
    await this.#setHardEnd(live, this.#states.get(sandbox.id) ?? sandbox); // it may have changed while nobody was connected
    return live;
  }

  /** A channel that breaks meanwhile is made anew, and told again. */
  async #setHardEnd(live: Live, sandbox: SandboxState): Promise<void> {
    const endAt = hardEndOf(sandbox);
    live.hardEndAt = endAt;
    try {
      await live.chronus.setLife(this.#secondsTo(endAt));
    } catch (thrown) {
      live.hardEndAt = 0;
      this.#o.log.warn('sandbox.life_not_set', { actorId: sandbox.id, message: (thrown as Error).message });
    }
  }

  #secondsTo(at: number): number {
    return Math.max(1, Math.ceil((at - this.#o.clock.now()) / 1_000));
  }

  #isExpired(sandbox: SandboxState): boolean {
    const { stopReason, totalDeadlineAt } = this.#states.get(sandbox.id) ?? sandbox;
    return stopReason === null ? totalDeadlineAt <= this.#o.clock.now() : EXPIRY_REASONS.has(stopReason);
  }

  #newChronus(sandbox: SandboxState, onActivity: () => void, onLost: () => void): Chronus {
    const { exec, socket } = sandboxPaths(this.#o, sandbox.id);
    return new Chronus({
      sandboxId: sandbox.id,
      execDir: exec,
      socketPath: socket,
      defaults: {
        user: sandbox.spec.initUser,
        env: { ...cpuHints(sandbox.spec.limits.cpuMillis), ...sandbox.spec.env },
        outputLimitBytes: sandbox.spec.limits.outputBytes,
        openFiles: sandbox.spec.limits.openFiles ?? undefined,
      },
      clock: this.#o.clock,
      onActivity,
      onLost,
      outputRetentionMs: this.#o.outputRetentionMs,
      isExpired: () => this.#isExpired(sandbox),
      record: recordOf(sandbox, this.#o.records),
    });
  }

  #newFiles(sandbox: SandboxState, onActivity: () => void): FileService {
    return new FileService({
      socketPath: sandboxPaths(this.#o, sandbox.id).socket,
      defaultUser: sandbox.spec.initUser,
      budget: this.#fileSessions,
      clock: this.#o.clock,
      onActivity,
    });
  }
}

const idle = (): void => {};

const recordOf = ({ project, spec }: SandboxState, records: CommandRecords) =>
  spec.recordCommands || spec.recoveredFrom ? { project, records, isRecorded: spec.recordCommands, origin: spec.recoveredFrom } : undefined;

/** When the agent ends it, should no Edge have done so. */
const hardEndOf = ({ totalDeadlineAt }: SandboxState): number => totalDeadlineAt + CONTAINER_LIMITS.hardLifeGraceMs;

const goneError = ({ id }: SandboxState): WireError =>
  wireError('SANDBOX_FAILED', `sandbox ${id} ended by itself: its first process is gone (killed from outside, or its life ran out on the node)`, {
    fault: 'infra',
    retry: 'later',
  });
