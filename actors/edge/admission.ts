/**
 * Admission: the Edge's final say on what fits this node. @paper §3.3
 *
 * Invariant INV-CAP: the sum of what admitted, not yet ended sandboxes asked for never exceeds the capacity, in any
 * dimension. Memory, pids, disk, descriptors and count are hard; CPU is shared, so it may be promised `cpuOvercommit` times
 * (@paper §4: 90 % of sandboxes use ≤5 % of the CPU they ask for).
 * A reservation is taken before the first commit and held until the sandbox has ended; after a restart it is rebuilt
 * from the states in the log. Also hands out slots: each live sandbox has its own range of 65,536 user ids.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import type { Capacity } from '#bus/edge/schema.ts';
import type { ProjectName, SandboxId } from '#bus/ids.ts';
import type { SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CpuMillis, MiB } from '#bus/units.ts';
import { mayShare, type Tenancy } from '../placement/isolation.ts';
import { ADMISSION_LIMITS } from './limits.ts';

/** What it asked for is read from its spec, which all sandboxes of a request share. */
type Reservation = { readonly project: ProjectName; readonly spec: SandboxSpec; readonly slot: number };
export type Admitted = { readonly ok: true; readonly slot: number } | { readonly ok: false; readonly error: WireError };

export class Admission {
  readonly #capacity: Capacity;
  readonly #openFilesMax: number;
  readonly #reservations = new Map<SandboxId, Reservation>();
  /** By slot. */
  readonly #isTaken: boolean[] = [];
  readonly #running = new Map<ProjectName, number>();
  /** How many sandboxes require that their project has the node to itself; they are all of one project. */
  #apart = 0;
  #memoryMiB = 0;
  #cpuMillis = 0;
  #pids = 0;
  #diskMiB = 0;
  #lowestFreeSlot = 0;

  /** `openFilesMax`: what one process on this node may have open. */
  constructor(capacity: Capacity, openFilesMax = Number.MAX_SAFE_INTEGER) {
    this.#capacity = capacity;
    this.#openFilesMax = openFilesMax;
  }

  /** Reserves, or says which dimension is full. Repeated for the same sandbox it answers with the same slot. */
  admit(id: SandboxId, spec: SandboxSpec, project: ProjectName): Admitted {
    const held = this.#reservations.get(id);
    if (held) return { ok: true, slot: held.slot };
    const lacking = this.#lacking(spec, project);
    if (lacking) return { ok: false, error: lacking };
    const slot = this.#freeSlot();
    this.#hold(id, spec, slot, project);
    return { ok: true, slot };
  }

  /** Takes over what a sandbox found in the log already holds, even beyond the capacity: it lives, so it counts. */
  restore(id: SandboxId, spec: SandboxSpec, slot: number, project: ProjectName): void {
    if (!this.#reservations.has(id)) this.#hold(id, spec, slot, project);
  }

  release(id: SandboxId): void {
    const held = this.#reservations.get(id);
    if (!held) return;
    this.#reservations.delete(id);
    this.#isTaken[held.slot] = false;
    this.#lowestFreeSlot = Math.min(this.#lowestFreeSlot, held.slot);
    this.#count(held, -1);
  }

  /** Who is on the node. */
  tenancy(): Tenancy {
    const [first = null] = this.#running.keys();
    return { running: Object.fromEntries(this.#running), reservedFor: this.#apart > 0 ? first : null };
  }

  used(): Capacity {
    return {
      sandboxes: this.#reservations.size,
      memoryMiB: this.#memoryMiB as MiB,
      cpuMillis: this.#cpuMillis as CpuMillis,
      pids: this.#pids,
      diskMiB: this.#diskMiB as MiB,
      descriptors: this.#reservations.size * ADMISSION_LIMITS.descriptorsPerSandbox,
    };
  }

  #lacking({ limits, isolation }: SandboxSpec, project: ProjectName): WireError | undefined {
    if ((isolation === 'requireApart' || this.#apart > 0) && !mayShare(project, isolation, this.tenancy()))
      return wireError('NODE_FULL', `sandboxes of another project are on this node, and one of both must be kept apart; another node may do`, {
        details: { dimension: 'isolation' },
      });
    const c = this.#capacity;
    const used = this.used();
    const full = (what: string, asked: number, free: number, total: number) => {
      const never = asked > total;
      const message = never
        ? `${what}: ${asked} asked for, the node has ${total} in all; ask for less`
        : `${what}: ${asked} asked for, ${free} of ${total} free on this node; stop sandboxes or try again later`;
      return wireError('NODE_FULL', message, { details: { dimension: what, asked, free, total }, retry: never ? 'never' : 'later' });
    };
    const check = (what: string, asked: number, usedNow: number, total: number) =>
      usedNow + asked > total ? full(what, asked, total - usedNow, total) : undefined;
    return (
      check('sandboxes', 1, used.sandboxes, c.sandboxes) ??
      check('memoryMiB', limits.memoryMiB, used.memoryMiB, c.memoryMiB) ??
      (limits.cpuMillis > c.cpuMillis / ADMISSION_LIMITS.cpuOvercommit
        ? full('cpuMillis', limits.cpuMillis, 0, c.cpuMillis / ADMISSION_LIMITS.cpuOvercommit)
        : check('cpuMillis', limits.cpuMillis, used.cpuMillis, c.cpuMillis)) ??
      check('pids', limits.pids, used.pids, c.pids) ??
      check('diskMiB', limits.diskMiB ?? 0, used.diskMiB, c.diskMiB) ??
      (limits.openFiles !== null && limits.openFiles > this.#openFilesMax ? full('openFiles', limits.openFiles, 0, this.#openFilesMax) : undefined) ??
      check('descriptors', ADMISSION_LIMITS.descriptorsPerSandbox, used.descriptors, c.descriptors)
    );
  }

  #hold(id: SandboxId, spec: SandboxSpec, slot: number, project: ProjectName): void {
    const held = { project, spec, slot };
    this.#reservations.set(id, held);
    while (this.#isTaken.length < slot) this.#isTaken.push(false);
    this.#isTaken[slot] = true;
    this.#count(held, 1);
  }

  #count({ project, spec: { limits, isolation } }: Reservation, sign: 1 | -1): void {
    const running = (this.#running.get(project) ?? 0) + sign;
    if (running > 0) this.#running.set(project, running);
    else this.#running.delete(project);
    if (isolation === 'requireApart') this.#apart += sign;
    this.#memoryMiB += sign * limits.memoryMiB;
    this.#cpuMillis += sign * limits.cpuMillis;
    this.#pids += sign * limits.pids;
    this.#diskMiB += sign * (limits.diskMiB ?? 0);
  }

  #freeSlot(): number {
    let slot = this.#lowestFreeSlot;
    while (this.#isTaken[slot]) slot += 1;
    this.#lowestFreeSlot = slot + 1;
    return slot;
  }
}
