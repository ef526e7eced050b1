/**
 * How many creates wait for a placement, by project and by lane, as this apiserver knows it: those it stored and whose turn has not
 * come yet. That it has come is read in the log, in the first commit of their request; where there is none to come, a placement says
 * it. Beyond the limits it answers OVERLOADED and stores nothing.
 *
 * What is never heard of counts as told after `forgottenMs`. Other apiservers count for themselves; the sum is what lanes are sized for.
 */
import type { Commit } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import type { Clock } from '#actors/ports/clock.ts';

export type WaitingLimits = {
  readonly perProject: number;
  readonly perLane: number;
  /** What one that is refused is told to wait, at the least. */
  readonly retryAfterMs: number;
  readonly forgottenMs: number;
};

type Entry = { readonly project: ProjectName; readonly lane: number; readonly at: number };

export class WaitingCreates {
  readonly #limits: WaitingLimits;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** By command id, oldest first. */
  readonly #entries = new Map<string, Entry>();
  readonly #projects = new Map<ProjectName, number>();
  readonly #lanes = new Map<number, number>();

  constructor(limits: WaitingLimits, clock: Pick<Clock, 'monotonicMs'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Throws OVERLOADED when the project's or the lane's queue is full. A repetition of what waits already takes no second place. */
  enter(commandId: string, project: ProjectName, lane: number): void {
    this.#dropForgotten();
    if (this.#entries.has(commandId)) return;
    const { perProject, perLane } = this.#limits;
    if (this.waitingOf(project) >= perProject) throw this.#full(`project ${project} has ${perProject} creates waiting to be placed`, 'project', perProject);
    if ((this.#lanes.get(lane) ?? 0) >= perLane) throw this.#full(`${perLane} creates wait on lane ${lane}`, 'lane', perLane);
    this.#entries.set(commandId, { project, lane, at: this.#clock.monotonicMs() });
    this.#projects.set(project, this.waitingOf(project) + 1);
    this.#lanes.set(lane, (this.#lanes.get(lane) ?? 0) + 1);
  }

  /** Every commit that this process reads. */
  heard({ kind, version, commandId }: Pick<Commit, 'kind' | 'version' | 'commandId'>): void {
    if (kind === 'request' && version === 1) this.leave(commandId);
  }

  /** Its turn has come, or it was not stored. */
  leave(commandId: string): void {
    const entry = this.#entries.get(commandId);
    if (!entry) return;
    this.#entries.delete(commandId);
    less(this.#projects, entry.project);
    less(this.#lanes, entry.lane);
  }

  waitingOf(project: ProjectName): number {
    return this.#projects.get(project) ?? 0;
  }

  #dropForgotten(): void {
    const before = this.#clock.monotonicMs() - this.#limits.forgottenMs;
    for (const [id, { at }] of this.#entries) {
      if (at > before) return;
      this.leave(id);
    }
  }

  #full(what: string, queue: 'project' | 'lane', limit: number): DsecError {
    return DsecError.of('OVERLOADED', `${what}; nothing was stored, repeat it with the same key after a while`, {
      details: { retryAfterMs: this.#limits.retryAfterMs, queue, limit },
    });
  }
}

const less = <K>(counts: Map<K, number>, key: K): void => {
  const left = (counts.get(key) ?? 1) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
};
