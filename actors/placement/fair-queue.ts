/**
 * Whose turn it is on a lane: work waits per project, projects are served in turn, and none has more than its share under way.
 *
 * INV-FAIR: a project that waits is served after at most one piece of work of each other project that waits, whatever they have
 * queued. Does not bound what waits: that is the lane's consumer and the apiserver.
 */
import type { ProjectName } from '#bus/ids.ts';

export type FairLimits = { readonly inFlight: number; readonly inFlightPerProject: number };

export class FairQueue<T> {
  readonly #limits: FairLimits;
  /** In the order of their turns; a project leaves when nothing of it waits. */
  readonly #waiting = new Map<ProjectName, T[]>();
  readonly #running = new Map<ProjectName, number>();
  #inFlight = 0;

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  push(project: ProjectName, work: T): void {
    const line = this.#waiting.get(project);
    if (line) line.push(work);
    else this.#waiting.set(project, [work]);
  }

  /** Takes the next piece of work; undefined when nothing waits or too much is under way. Every one taken is to be `done`. */
  take(): { readonly project: ProjectName; readonly work: T } | undefined {
    if (this.#inFlight >= this.#limits.inFlight) return undefined;
    for (const [project, line] of this.#waiting) {
      if (this.runningOf(project) >= this.#shareOf(project)) continue;
      const work = line.shift() as T;
      this.#waiting.delete(project); // its next turn comes after the others'
      if (line.length > 0) this.#waiting.set(project, line);
      this.#running.set(project, this.runningOf(project) + 1);
      this.#inFlight += 1;
      return { project, work };
    }
    return undefined;
  }

  done(project: ProjectName): void {
    const left = this.runningOf(project) - 1;
    if (left < 0) throw new Error(`${project} has nothing under way`);
    if (left > 0) this.#running.set(project, left);
    else this.#running.delete(project);
    this.#inFlight -= 1;
  }

  waitingOf(project: ProjectName): number {
    return this.#waiting.get(project)?.length ?? 0;
  }
  runningOf(project: ProjectName): number {
    return this.#running.get(project) ?? 0;
  }

  /** A project alone may use the whole lane. */
  #shareOf(project: ProjectName): number {
    const isAlone = this.#waiting.size === 1 && [...this.#running.keys()].every((other) => other === project);
    return isAlone ? this.#limits.inFlight - this.#limits.inFlightPerProject : this.#limits.inFlightPerProject;
  }
}
