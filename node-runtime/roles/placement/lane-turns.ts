/** Lets deliveries of a lane be handled in their projects' turns, and keeps those that wait from being delivered again. */
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import type { FairQueue } from '#actors/placement/fair-queue.ts';
import type { Delivery } from '#actors/ports/command-queue.ts';
import { PLACEMENT_LIMITS } from './limits.ts';

type Waiting = { readonly delivery: Delivery; readonly start: () => void; readonly giveUp: () => void };

export class LaneTurns {
  readonly #newQueue: () => FairQueue<Waiting>;
  readonly #lanes = new Map<number, FairQueue<Waiting>>();
  readonly #waiting = new Set<Waiting>();
  readonly #extender: NodeJS.Timeout;
  #closed = false;

  constructor(newQueue: () => FairQueue<Waiting>) {
    this.#newQueue = newQueue;
    this.#extender = setInterval(() => {
      for (const { delivery } of this.#waiting) delivery.extend();
    }, PLACEMENT_LIMITS.extendEveryMs);
  }

  /** Rejects when this process ends before its turn: the next one takes it up. */
  async inTurn(lane: number, project: ProjectName, delivery: Delivery, work: () => Promise<void>): Promise<void> {
    const queue = this.#lanes.get(lane) ?? this.#newQueue();
    this.#lanes.set(lane, queue);
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = { delivery, start: resolve, giveUp: () => reject(ending()) };
      if (this.#closed) return waiting.giveUp();
      this.#waiting.add(waiting);
      queue.push(project, waiting);
      this.#startNext(queue);
    });
    try {
      await work();
    } finally {
      queue.done(project);
      this.#startNext(queue);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#extender);
    for (const { giveUp } of this.#waiting) giveUp();
    this.#waiting.clear();
  }

  #startNext(queue: FairQueue<Waiting>): void {
    for (let next = this.#closed ? undefined : queue.take(); next; next = queue.take()) {
      this.#waiting.delete(next.work);
      next.work.start();
    }
  }
}

const ending = (): DsecError => DsecError.of('OVERLOADED', 'this placement is shutting down; another one takes it up');
