/** Workers of one sandbox for short operations: a few, kept for a moment, never shared by two operations at a time. */
import { DsecError } from '#bus/errors.ts';
import { Semaphore } from '../roles/semaphore.ts';
import { type Answer, type Exchange, exchange } from './exchange.ts';
import { FILES_LIMITS } from './limits.ts';
import { Worker } from './worker.ts';

type Idle = { readonly worker: Worker; readonly user: string; readonly timer: NodeJS.Timeout };

export class WorkerPool {
  readonly #socketPath: string;
  readonly #connecting = new Semaphore(FILES_LIMITS.connecting);
  readonly #running = new Semaphore(FILES_LIMITS.shortWorkers);
  readonly #busy = new Set<Worker>();
  #idle: Idle[] = [];
  #operations = 0;
  #closed = false;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** A worker of its own, for a session. */
  open(user: string): Promise<Worker> {
    return this.#connecting.run(async () => {
      const worker = await Worker.open(this.#socketPath, user);
      if (!this.#closed) return worker;
      worker.close();
      throw leaving();
    });
  }

  async run(user: string, order: Exchange): Promise<Answer> {
    if (this.#closed) throw leaving();
    if (this.#operations >= FILES_LIMITS.shortOperations)
      throw DsecError.of('OVERLOADED', `${this.#operations} file operations of this sandbox wait already; try again`);
    this.#operations += 1;
    try {
      return await this.#running.run(() => this.#runOn(user, order));
    } finally {
      this.#operations -= 1;
    }
  }

  close(): void {
    this.#closed = true;
    for (const { worker, timer } of this.#idle) {
      clearTimeout(timer);
      worker.close();
    }
    this.#idle = [];
    for (const worker of this.#busy) worker.abandon(leaving());
  }

  async #runOn(user: string, order: Exchange): Promise<Answer> {
    const worker = this.#takeIdle(user) ?? (await this.open(user));
    this.#busy.add(worker);
    try {
      return await exchange(worker, order);
    } finally {
      this.#busy.delete(worker);
      if (worker.open && !this.#closed) this.#keep(user, worker);
      else worker.close();
    }
  }

  #takeIdle(user: string): Worker | undefined {
    const found = this.#idle.find((idle) => idle.user === user);
    if (!found) return undefined;
    this.#forget(found);
    return found.worker;
  }

  #keep(user: string, worker: Worker): void {
    const idle: Idle = {
      worker,
      user,
      timer: setTimeout(() => {
        this.#forget(idle);
        worker.close();
      }, FILES_LIMITS.idleWorkerMs).unref(),
    };
    worker.listen({
      frame: () => {
        this.#forget(idle); // unasked: it cannot be trusted to answer the next request
        worker.close();
      },
      close: () => this.#forget(idle),
    });
    this.#idle.push(idle);
  }

  #forget(idle: Idle): void {
    clearTimeout(idle.timer);
    this.#idle = this.#idle.filter((other) => other !== idle);
  }
}

export const leaving = (): DsecError => DsecError.of('EDGE_UNAVAILABLE', 'this node stops serving the sandbox for now; repeat the call');
