/**
 * The container backend: launcher for birth and death, Aether's channel for life, Chronus for what runs inside.
 *
 * Owns the files of each sandbox (`<dataDir>/sandboxes/<id>/{upper,work,exec}`, or `disk.ext4` in place of the first two where it has
 * a disk limit) and the mounted images they stand on.
 * Knows nothing of states and deadlines. @paper §2.2 §3.3 §5.1
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import type { LayerDigest, SandboxId } from '#bus/ids.ts';
import { EXPIRY_REASONS, type SandboxState } from '#bus/sandbox/state.ts';
import type { CommandRecords } from '#actors/ports/command-records.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { Overtaking, SandboxBackend, SnapshotOrder } from '#actors/ports/sandbox-backend.ts';
import { isFileOp } from '#bus/op/files.ts';
import { isPortOp } from '#bus/op/ports.ts';
import type { ExecOpName, OpParsed } from '#bus/op/schema.ts';
import { Chronus } from '../../chronus/chronus.ts';
import { FileService } from '../../files/service.ts';
import { SessionBudget } from '../../files/sessions.ts';
import { PortService } from '../../ports/service.ts';
import type { LauncherClient } from '../../launcher/client.ts';
import type { OpHandler } from '../../roles/edge/ops.ts';
import type { Log } from '../../log/log.ts';
import { Semaphore } from '../../roles/semaphore.ts';
import type { Snapshotter, SnapshotResult } from '../../snapshots/snapshotter.ts';
import type { DiskTemplates } from './disk-templates.ts';
import { Freezer } from './freezer.ts';
import { cpuHints } from './hints.ts';
import { CONTAINER_LIMITS } from './limits.ts';
import type { PausedMemory } from './paused-memory.ts';

const DISK = 'disk.ext4';

export type ImageMounts = {
  /** Makes sure that a layer is mounted on this node and counts the sandbox as its user. */
  acquire(digest: LayerDigest, id: SandboxId): Promise<void>;
  release(id: SandboxId): Promise<void>;
};

export type ContainerBackendOptions = {
  readonly sandboxesDir: string;
  readonly socketsDir: string;
  /** The launcher's client; a new one after the launcher died. Rejects while there is none. */
  readonly launcher: () => Promise<LauncherClient>;
  readonly images: ImageMounts;
  readonly disks: Pick<DiskTemplates, 'pathFor'>;
  readonly snapshots: Snapshotter;
  readonly memory: PausedMemory;
  /** Why a paused sandbox may not go on now; null when it may. */
  readonly refusalOfResume: (sandbox: SandboxState) => WireError | null;
  /** How long output of ended commands is kept. */
  readonly outputRetentionMs: number;
  /** Where commands of sandboxes that ask for it are recorded. */
  readonly records: CommandRecords;
  readonly clock: Clock;
  readonly log: Log;
};

type Live = {
  readonly chronus: Chronus;
  readonly files: FileService;
  readonly ports: PortService;
  readonly gone: Promise<WireError>;
  activityAt: number;
  hardEndAt: number;
};

export class ContainerBackend implements SandboxBackend {
  readonly #o: ContainerBackendOptions;
  readonly #live = new Map<SandboxId, Live>();
  /** Newest state of each sandbox that is not over. */
  readonly #states = new Map<SandboxId, SandboxState>();
  readonly #attaching = new Map<SandboxId, Promise<Live | WireError>>();
  readonly #fileSessions = new SessionBudget();
  readonly #launches = new Semaphore(CONTAINER_LIMITS.launchesInFlight);
  /** Who wants the commands of which sandbox at rest. */
  readonly freezer: Freezer;

  constructor(options: ContainerBackendOptions) {
    this.#o = options;
    this.freezer = new Freezer(options.launcher);
  }

  ensureLaunched(sandbox: SandboxState, { signal }: Overtaking): Promise<{ readonly pid: number }> {
    return this.#launches.run(async () => {
      if (signal.aborted) throw DsecError.of('CANCELLED', `launch of ${sandbox.id} was overtaken by its end`);
      const dir = this.#dir(sandbox.id);
      mkdirSync(join(dir, 'exec'), { recursive: true, mode: 0o711 });
      for (const digest of sandbox.spec.layers) await this.#o.images.acquire(digest, sandbox.id);
      const { diskMiB, ...limits } = sandbox.spec.limits;
      const disk = diskMiB === null ? {} : { disk: join(dir, DISK), diskTemplate: await this.#o.disks.pathFor(diskMiB) };
      const launcher = await this.#o.launcher();
      const { pid } = await launcher.launch({
        id: sandbox.id,
        hostname: sandbox.spec.hostname ?? `sb-${uniquePart(sandbox.id).slice(0, 12)}`,
        slot: sandbox.slot,
        layers: sandbox.spec.layers,
        upper: join(dir, 'upper'),
        work: join(dir, 'work'),
        execDir: join(dir, 'exec'),
        socket: this.#socket(sandbox.id),
        ...disk,
        memoryMiB: limits.memoryMiB,
        swapMiB: limits.swapMiB,
        cpuMillis: limits.cpuMillis,
        cpuWeight: limits.cpuWeight,
        pids: limits.pids,
        lifeSeconds: this.#secondsTo(hardEndOf(sandbox)),
      });
      this.freezer.born(sandbox.id);
      return { pid };
    });
  }

  /**
   * What holds for a sandbox from now on. A new total life is told to its agent, which would end it at the old one; whether its
   * end is the end of a life decides what its commands are told.
   */
  follow(sandbox: SandboxState): void {
    this.#states.set(sandbox.id, sandbox);
    const live = this.#live.get(sandbox.id);
    if (live && live.hardEndAt !== hardEndOf(sandbox)) void this.#setHardEnd(live, sandbox);
  }

  async watch(sandbox: SandboxState, frozen: boolean | null, { signal }: Overtaking): Promise<WireError | null> {
    const attached = await this.#attach(sandbox);
    if (!('gone' in attached)) return attached;
    if (frozen !== null) await this.#rest(sandbox.id, attached, frozen);
    if (signal.aborted) return null;
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(null), { once: true });
      void attached.gone.then((error) => {
        attached.files.close();
        attached.ports.close();
        if (this.#live.get(sandbox.id) === attached) this.#live.delete(sandbox.id);
        resolve(signal.aborted ? null : error);
      });
    });
  }

  /** Chronus of a live sandbox, waiting for a channel that is just being made; undefined when there is none. */
  async chronus(id: SandboxId): Promise<Chronus | undefined> {
    const attached = this.#live.get(id) ?? (await this.#attaching.get(id));
    return attached && 'gone' in attached ? attached.chronus : undefined;
  }

  /** What answers operations on a live sandbox: commands, files, ports. */
  async handler(id: SandboxId): Promise<OpHandler | undefined> {
    const attached = this.#live.get(id) ?? (await this.#attaching.get(id));
    return attached && 'gone' in attached ? handlerOf(attached.chronus, attached) : undefined;
  }

  /** What still answers about a sandbox that has ended: its commands. */
  endedHandler(sandbox: SandboxState): OpHandler | undefined {
    const chronus = this.endedChronus(sandbox);
    return chronus && handlerOf(chronus, undefined);
  }

  /** Newest command activity: now while somebody waits for a command, 0 when nothing is known since this process started. */
  activityAt(id: SandboxId): number {
    const live = this.#live.get(id);
    if (!live) return 0;
    return live.chronus.isAttended ? this.#o.clock.now() : live.activityAt;
  }

  /** Reads what an ended sandbox left, while its logs are kept. */
  endedChronus(sandbox: SandboxState): Chronus | undefined {
    return existsSync(join(this.#dir(sandbox.id), 'exec'))
      ? this.#newChronus(
          sandbox,
          () => {},
          () => {},
        )
      : undefined;
  }

  async ensureDestroyed(sandbox: SandboxState): Promise<void> {
    await this.destroyUnknown(sandbox.id);
    this.#states.delete(sandbox.id);
    await this.#o.images.release(sandbox.id);
  }

  async destroyUnknown(id: SandboxId): Promise<void> {
    const launcher = await this.#o.launcher();
    const dir = this.#dir(id);
    await launcher.destroy({ id, upper: join(dir, 'upper'), work: join(dir, 'work'), disk: join(dir, DISK), socket: this.#socket(id) });
    this.#live.get(id)?.chronus.end();
    this.#live.get(id)?.files.close();
    this.#live.get(id)?.ports.close();
    this.#live.delete(id);
    this.freezer.forget(id);
  }

  async present(): Promise<SandboxId[]> {
    return (await (await this.#o.launcher()).list()).map(({ id }) => id as SandboxId);
  }

  /**
   * Stops or lets run every process of every sandbox that the kernel has, connected or not: what an Edge does that has lost its
   * lease. One that is paused stays so.
   */
  async freezeAll(frozen: boolean): Promise<void> {
    const present = await this.present();
    await Promise.allSettled(
      present.map(async (id) => {
        if (frozen) return this.freezer.hold(id, 'fenced');
        if (isPausedIn(this.#states.get(id))) await this.freezer.hold(id, 'paused');
        return this.freezer.release(id, 'fenced');
      }),
    );
  }

  async ensurePaused(sandbox: SandboxState): Promise<{ readonly memoryGivenBackMiB: number | null }> {
    await this.#rest(sandbox.id, await this.#attached(sandbox), true);
    return { memoryGivenBackMiB: await this.#o.memory.giveBack(sandbox.id) };
  }

  async ensureResumed(sandbox: SandboxState): Promise<void> {
    const refusal = this.freezer.runs(sandbox.id) ? null : this.#o.refusalOfResume(sandbox);
    if (refusal) throw new DsecError(refusal);
    await this.#rest(sandbox.id, await this.#attached(sandbox), false);
    void this.#o.memory.prefetch(sandbox.id);
  }

  /** What paused sandboxes were swapped to goes, at the node's clean end. */
  removeSwap(): Promise<void> {
    return this.#o.memory.removeSwap();
  }

  /** A paused sandbox rests already, and goes on resting. */
  ensureSnapshot(sandbox: SandboxState, order: SnapshotOrder): Promise<SnapshotResult> {
    const { id, spec } = sandbox;
    const dir = this.#dir(id);
    return this.#o.snapshots.take(sandbox, order, {
      upper: spec.limits.diskMiB === null ? { directory: join(dir, 'upper') } : { disk: join(dir, DISK) },
      rest: async () => {
        if (sandbox.returnTo === 'paused') await this.freezer.hold(id, 'paused');
        await this.freezer.hold(id, 'snapshot');
      },
      goOn: () => this.freezer.release(id, 'snapshot'),
    });
  }

  close(): void {
    for (const { chronus, files, ports } of this.#live.values()) {
      chronus.close();
      files.close();
      ports.close();
    }
    this.#live.clear();
  }

  /**
   * Commands rest or run, and so does the clock of their time-outs. It stands only while they are known to rest, so that whatever fails
   * between the two is made good by the next try.
   */
  async #rest(id: SandboxId, { chronus }: Live, resting: boolean): Promise<void> {
    if (!resting && this.freezer.runs(id)) return;
    if (!resting) await chronus.stopClock(false);
    await (resting ? this.freezer.hold(id, 'paused') : this.freezer.release(id, 'paused'));
    if (resting) await chronus.stopClock(true);
  }

  async #attached(sandbox: SandboxState): Promise<Live> {
    const attached = await this.#attach(sandbox);
    if (!('gone' in attached)) throw new DsecError(attached);
    return attached;
  }

  #attach(sandbox: SandboxState): Promise<Live | WireError> {
    const live = this.#live.get(sandbox.id);
    if (live) return Promise.resolve(live);
    const running = this.#attaching.get(sandbox.id) ?? this.#connect(sandbox).finally(() => this.#attaching.delete(sandbox.id));
    this.#attaching.set(sandbox.id, running);
    return running;
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
    const chronus = this.#newChronus(
      sandbox,
      () => {
        if (live) live.activityAt = this.#o.clock.now();
      },
      () => lost(goneError(sandbox)),
    );
    if (!(await chronus.attach())) return goneError(sandbox);
    const ports = new PortService({ socketPath: this.#socket(sandbox.id), clock: this.#o.clock, onActivity });
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
    return new Chronus({
      sandboxId: sandbox.id,
      execDir: join(this.#dir(sandbox.id), 'exec'),
      socketPath: this.#socket(sandbox.id),
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
      socketPath: this.#socket(sandbox.id),
      defaultUser: sandbox.spec.initUser,
      budget: this.#fileSessions,
      clock: this.#o.clock,
      onActivity,
    });
  }

  #dir(id: SandboxId): string {
    return join(this.#o.sandboxesDir, id);
  }

  #socket(id: SandboxId): string {
    return join(this.#o.socketsDir, `${uniquePart(id)}.sock`);
  }
}

const recordOf = ({ project, spec }: SandboxState, records: CommandRecords) =>
  spec.recordCommands || spec.recoveredFrom ? { project, records, isRecorded: spec.recordCommands, origin: spec.recoveredFrom } : undefined;

const isPausedIn = (state: SandboxState | undefined): boolean => state?.status === 'pausing' || state?.status === 'paused';

/** When the agent ends it, should no Edge have done so. */
const hardEndOf = ({ totalDeadlineAt }: SandboxState): number => totalDeadlineAt + CONTAINER_LIMITS.hardLifeGraceMs;

/** Operations on files and ports go to their services, which end with the sandbox; all others to Chronus. */
const handlerOf = (chronus: Chronus, live: Pick<Live, 'files' | 'ports'> | undefined): OpHandler => ({
  isRecorded: (op, request) => !isFileOp(op) && !isPortOp(op) && chronus.isRecorded(op as ExecOpName, request as OpParsed<ExecOpName>),
  handle: (op, request, body) => {
    if (!isFileOp(op) && !isPortOp(op)) return chronus.handle(op as ExecOpName, request as OpParsed<ExecOpName>, body);
    if (!live) throw DsecError.of('SANDBOX_ENDED', 'the sandbox has ended, and its files and servers with it; create a new one');
    return isFileOp(op) ? live.files.handle(op, request as OpParsed<typeof op>, body) : live.ports.handle(op, request as OpParsed<typeof op>, body);
  },
});

/** The hexadecimal part of a sandbox id, which alone names it on its node. */
const uniquePart = (id: SandboxId): string => id.split('-')[2] ?? id;

const goneError = ({ id }: SandboxState): WireError =>
  wireError('SANDBOX_FAILED', `sandbox ${id} ended by itself: its first process is gone (killed from outside, or its life ran out on the node)`, {
    fault: 'infra',
    retry: 'later',
  });
