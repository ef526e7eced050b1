/**
 * One node under the Edge: its launcher and the processes in its sandboxes. They outlive the Edge's process; a power loss takes
 * all of them. A sandbox is little here: its process and its limits, whether it is frozen, when its agent ends it.
 *
 * Keeps what the launcher promises: one Edge epoch at a time, a launch of what runs answers with what runs, a tombstone per
 * destroyed sandbox. How long things take and what fails is drawn per node from `MachineQuality`. @paper §3.3
 */
import { type WireError, wireError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import type { Limits } from '#bus/sandbox/spec.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { EPOCH_MS } from '../kernel/clock.ts';
import type { Task } from '../kernel/heap.ts';
import type { Random } from '../kernel/random.ts';
import { US_PER_MS, type VirtualTime } from '../kernel/virtual-time.ts';
import { MACHINE_LIMITS, type MachineQuality } from './machine-quality.ts';
import { keyOf, MessageIds } from './message-ids.ts';

export type Process = {
  readonly id: SandboxId;
  readonly pid: number;
  readonly limits: Limits;
  frozen: boolean;
  exit: Task | null;
  /** The newest one only. */
  watcher: unknown;
  gone: ((watcher: unknown, why: WireError) => void) | null;
};
export type Done<T> = (result: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: WireError }) => void;
export interface MachineObserver {
  /** Launched for an Edge of `epoch`, on a node that obeys `obeyed`. */
  born(machine: Machine, process: Process, epoch: number, obeyed: number): void;
  gone(machine: Machine, process: Process): void;
}

export class Machine {
  readonly name: string;
  /** The newest Edge that spoke to the launcher; older ones are refused. */
  epoch = 0;
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly quality: MachineQuality;
  readonly #observers: readonly MachineObserver[];
  readonly #processes = new Map<SandboxId, Process>();
  readonly #launching = new Map<SandboxId, Done<{ pid: number }>[]>();
  /** Of hashes: a day's sandboxes are remembered for a day. */
  readonly #tombs = new MessageIds(MACHINE_LIMITS.tombKeepMs);
  readonly #queue: (() => void)[] = [];
  #inFlight = 0;
  #nextPid = 100;
  #boot = 0;

  constructor(name: string, time: VirtualTime, random: Random, quality: MachineQuality, observers: readonly MachineObserver[]) {
    this.name = name;
    this.#time = time;
    this.#random = random;
    this.quality = quality;
    this.#observers = observers;
  }

  get live(): number {
    return this.#processes.size;
  }
  has(id: SandboxId): boolean {
    return this.#processes.has(id);
  }

  adoptEpoch(epoch: number): boolean {
    if (epoch < this.epoch) return false;
    this.epoch = epoch;
    return true;
  }

  launch(epoch: number, state: SandboxState, done: Done<{ pid: number }>): void {
    const { id } = state;
    if (epoch !== this.epoch) return this.#refuse(done, fenced(epoch, this.epoch));
    const running = this.#processes.get(id);
    if (running) return this.#answer(done, { pid: running.pid });
    if (this.#isBuried(id)) return this.#refuse(done, wireError('SANDBOX_ENDED', `sandbox ${id} was destroyed on this node`));
    const joined = this.#launching.get(id);
    if (joined) {
      joined.push(done);
      return;
    }
    this.#launching.set(id, [done]);
    const obeyed = this.epoch;
    this.#enqueue(() => this.#bootUp(epoch, obeyed, state));
  }

  destroy(epoch: number, id: SandboxId, done: Done<null>): void {
    if (epoch !== this.epoch) return this.#refuse(done, fenced(epoch, this.epoch));
    this.#bury(id);
    this.#endLaunch(id, wireError('SANDBOX_ENDED', `sandbox ${id} was destroyed while it started`));
    const { destroyMinUs, destroyMaxUs, zombiePerMille, zombieUs } = this.quality;
    const isZombie = this.#processes.has(id) && this.#random.chance(zombiePerMille);
    const boot = this.#boot;
    this.#time.after(isZombie ? zombieUs : this.#random.between(destroyMinUs, destroyMaxUs), 'destroyed', () => {
      if (boot !== this.#boot) return;
      this.#end(id, null);
      done({ ok: true, value: null });
    });
  }

  /** Freezing is instant, or fails; reclaiming takes its time. */
  pause(epoch: number, id: SandboxId, done: Done<null>): void {
    this.#change(epoch, id, this.quality.pauseUs, done, (process) => {
      process.frozen = true;
    });
  }
  resume(epoch: number, id: SandboxId, done: Done<null>): void {
    this.#change(epoch, id, this.quality.resumeUs, done, (process) => {
      process.frozen = false;
    });
  }
  snapshot(epoch: number, id: SandboxId, done: Done<null>): void {
    this.#change(epoch, id, this.#random.between(this.quality.resumeUs, this.quality.snapshotUs), done, () => {});
  }

  /** Tells when the process is gone; the newest watcher only. Null when it lives; otherwise it is gone already. */
  watch<W>(id: SandboxId, who: W, gone: (who: W, why: WireError) => void): WireError | null {
    const process = this.#processes.get(id);
    if (!process) return exited(id, 'it is not there');
    process.watcher = who;
    process.gone = gone as Process['gone'];
    return null;
  }

  setFrozen(id: SandboxId, frozen: boolean): void {
    const process = this.#processes.get(id);
    if (process) process.frozen = frozen;
  }
  freezeAll(frozen: boolean): void {
    for (const process of this.#processes.values()) process.frozen = frozen;
  }
  forgetWatchers(): void {
    for (const process of this.#processes.values()) process.gone = null;
  }

  /** One that is not frozen, when there is one. */
  awake(): SandboxId | undefined {
    for (const { id, frozen } of this.#processes.values()) if (!frozen) return id;
    return undefined;
  }

  present(): SandboxId[] {
    return [...this.#processes.keys()];
  }

  /** A sandbox ends by itself: out of memory, or its agent at the end of its total life. */
  kill(id: SandboxId, why: string): void {
    this.#end(id, exited(id, why));
  }

  powerLoss(): void {
    this.#boot += 1;
    for (const id of [...this.#processes.keys()]) this.#end(id, null);
    this.#launching.clear();
    this.#queue.length = 0;
    this.#inFlight = 0;
    this.epoch = 0;
  }

  #bootUp(epoch: number, obeyed: number, state: SandboxState): void {
    const { bootMinUs, bootMaxUs, slowBootPerMille, slowBootUs, launchErrorPerMille, startFailedPerMille } = this.quality;
    const takesUs = this.#random.chance(slowBootPerMille) ? slowBootUs : this.#random.between(bootMinUs, bootMaxUs);
    const boot = this.#boot;
    this.#time.after(takesUs, 'booted', () => {
      if (boot !== this.#boot) return;
      this.#next();
      if (!this.#launching.has(state.id)) return; // destroyed meanwhile
      if (this.#random.chance(startFailedPerMille)) return this.#endLaunch(state.id, wireError('START_FAILED', 'no /bin/sh in the image'));
      if (this.#random.chance(launchErrorPerMille)) return this.#endLaunch(state.id, wireError('INTERNAL', 'the launcher did not answer'));
      const process = this.#bear(epoch, obeyed, state);
      const waiting = this.#launching.get(state.id) ?? [];
      this.#launching.delete(state.id);
      for (const done of waiting) done({ ok: true, value: { pid: process.pid } });
    });
  }

  #bear(epoch: number, obeyed: number, { id, spec, totalDeadlineAt }: SandboxState): Process {
    const process: Process = { id, pid: this.#nextPid++, limits: spec.limits, frozen: false, exit: null, watcher: null, gone: null };
    this.#processes.set(id, process);
    for (const observer of this.#observers) observer.born(this, process, epoch, obeyed);
    if (this.#random.chance(this.quality.oomPerMille)) {
      const afterUs = this.#random.between(0, this.quality.oomWithinUs);
      process.exit = this.#time.after(afterUs, 'out of memory', () => this.kill(id, 'it ran out of memory'));
    } else if (this.quality.agentEndsLife) {
      const endUs = (totalDeadlineAt - EPOCH_MS + MACHINE_LIMITS.agentGraceMs) * US_PER_MS;
      process.exit = this.#time.after(endUs - this.#time.nowUs, 'agent ends it', () => this.kill(id, 'its total life was over'));
    }
    return process;
  }

  #end(id: SandboxId, why: WireError | null): void {
    const process = this.#processes.get(id);
    if (!process) return;
    this.#processes.delete(id);
    this.#time.cancel(process.exit);
    for (const observer of this.#observers) observer.gone(this, process);
    if (why) process.gone?.(process.watcher, why);
  }

  #change(epoch: number, id: SandboxId, takesUs: number, done: Done<null>, change: (process: Process) => void): void {
    if (epoch !== this.epoch) return this.#refuse(done, fenced(epoch, this.epoch));
    this.#time.after(takesUs, 'changed', () => {
      const process = this.#processes.get(id);
      if (!process) return done({ ok: false, error: exited(id, 'it is not there') });
      if (this.#random.chance(this.quality.changeErrorPerMille)) return done({ ok: false, error: wireError('INVALID_STATE', `${id} could not be changed`) });
      change(process);
      done({ ok: true, value: null });
    });
  }

  #endLaunch(id: SandboxId, error: WireError): void {
    const waiting = this.#launching.get(id) ?? [];
    this.#launching.delete(id);
    for (const done of waiting) done({ ok: false, error });
  }

  #bury(id: SandboxId): void {
    this.#tombs.remember(this.#nowMs, keyOf(id), 0);
  }

  #isBuried(id: SandboxId): boolean {
    return this.#tombs.get(this.#nowMs, keyOf(id)) !== undefined;
  }

  get #nowMs(): number {
    return Math.floor(this.#time.nowUs / US_PER_MS);
  }

  /** For tests of the checkers: what a launcher without memory would do. */
  protected bearAgain(epoch: number, state: SandboxState): void {
    this.#bear(epoch, this.epoch, state);
  }

  /** The launcher does so many at a time; more wait in it. */
  #enqueue(boot: () => void): void {
    if (this.#inFlight >= MACHINE_LIMITS.launchesInFlight) {
      this.#queue.push(boot);
      return;
    }
    this.#inFlight += 1;
    boot();
  }
  #next(): void {
    this.#inFlight -= 1;
    const waiting = this.#queue.shift();
    if (waiting) this.#enqueue(waiting);
  }

  #answer<T>(done: Done<T>, value: T): void {
    this.#time.after(this.quality.bootMinUs, 'known', () => done({ ok: true, value }));
  }
  #refuse<T>(done: Done<T>, error: WireError): void {
    this.#time.after(this.quality.bootMinUs, 'refused', () => done({ ok: false, error }));
  }
}

const fenced = (epoch: number, newest: number): WireError => wireError('EDGE_FENCED', `epoch ${epoch} is over, the launcher obeys ${newest}`);
const exited = (id: SandboxId, why: string): WireError => wireError('SANDBOX_FAILED', `sandbox ${id}: ${why}`);
