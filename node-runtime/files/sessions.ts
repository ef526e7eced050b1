/** The sessions of one sandbox: named by their clients, bounded, closed when nobody asks anything of them. */
import { DsecError } from '#bus/errors.ts';
import { FILE_LIMITS } from '#bus/limits.ts';
import type { Download } from './download.ts';
import { FILES_LIMITS } from './limits.ts';
import type { Upload } from './upload.ts';

/** Sessions of a whole Edge; shared by all sandboxes of it. */
export class SessionBudget {
  #used = 0;

  take(): void {
    if (this.#used >= FILES_LIMITS.sessionsPerEdge) throw DsecError.of('OVERLOADED', `this node already carries ${this.#used} file streams; try again`);
    this.#used += 1;
  }
  give(): void {
    this.#used -= 1;
  }
}

export type Session = { readonly kind: 'download'; readonly stream: Download } | { readonly kind: 'upload'; readonly stream: Upload };
type Held = { readonly session: Promise<Session>; readonly timer: NodeJS.Timeout; inUse: number };

export class Sessions {
  readonly #budget: SessionBudget;
  readonly #held = new Map<string, Held>();

  constructor(budget: SessionBudget) {
    this.#budget = budget;
  }

  /** The session of this name: opened now, or known from the same call before. */
  open(name: string, make: () => Promise<Session>): Promise<Session> {
    const known = this.#held.get(name);
    if (known) return this.use(name, async (session) => session);
    if (this.#held.size >= FILES_LIMITS.sessionsPerSandbox)
      return Promise.reject(DsecError.of('OVERLOADED', `this sandbox already has ${this.#held.size} file streams open; finish some, or try again`));
    this.#budget.take();
    const timer = setTimeout(() => this.#onIdle(name), FILE_LIMITS.sessionIdleMs).unref();
    const session = make();
    this.#held.set(name, { session, timer, inUse: 0 });
    session.catch(() => this.#drop(name)); // the caller is told; a repetition tries again
    return this.use(name, async (opened) => opened);
  }

  async use<T>(name: string, work: (session: Session) => Promise<T>): Promise<T> {
    const held = this.#held.get(name);
    if (!held)
      throw DsecError.of(
        'FILE_SESSION_LOST',
        `there is no file stream ${name} here: the node was restarted or it was idle for ${FILE_LIMITS.sessionIdleMs / 1_000} s; start again`,
      );
    held.inUse += 1;
    try {
      return await work(await held.session);
    } finally {
      held.inUse -= 1;
      held.timer.refresh();
    }
  }

  close(name: string): void {
    const held = this.#drop(name);
    void held?.session.then(
      ({ stream }) => stream.close(DsecError.of('CANCELLED', 'the stream was closed by its client')),
      () => undefined,
    );
  }

  closeAll(error: DsecError): void {
    for (const name of [...this.#held.keys()]) {
      const held = this.#drop(name);
      void held?.session.then(
        ({ stream }) => stream.close(error),
        () => undefined,
      );
    }
  }

  #onIdle(name: string): void {
    const held = this.#held.get(name);
    if (held && held.inUse > 0) held.timer.refresh();
    else this.close(name);
  }

  #drop(name: string): Held | undefined {
    const held = this.#held.get(name);
    if (!held) return undefined;
    clearTimeout(held.timer);
    this.#held.delete(name);
    this.#budget.give();
    return held;
  }
}
