/** Whoever asks an apiserver for something: one request to whichever takes it, and a bounded wait for what comes back. */
import type { Random } from '../kernel/random.ts';
import type { ApiAnswer, SimApiserver } from './apiserver.ts';
import type { Process } from './process.ts';

/** A live apiserver that the process would reach; null when there is none. */
export type SomeApiserver = (random: Random) => SimApiserver | null;

export class SimClient {
  readonly #process: Process;
  readonly #someApiserver: SomeApiserver;
  readonly #timeoutMs: number;

  constructor(process: Process, someApiserver: SomeApiserver, timeoutMs: number) {
    this.#process = process;
    this.#someApiserver = someApiserver;
    this.#timeoutMs = timeoutMs;
  }

  /** Null when nothing came back in time. */
  call<T>(ask: (api: SimApiserver, answer: (answer: ApiAnswer<T>) => void) => void, done: (answer: ApiAnswer<T> | null) => void): void {
    const { link, clock, random } = this.#process;
    const api = this.#someApiserver(random);
    let open = true;
    const hear = (answer: ApiAnswer<T> | null) => {
      if (!open) return;
      open = false;
      clock.cancel(timer);
      done(answer);
    };
    const timer = this.#process.after(this.#timeoutMs, 'call timed out', () => hear(null));
    link.send('call', () => {
      if (api?.process.alive) ask(api, (answer) => api.process.link.send('answer', () => link.receive('answer', () => hear(answer))));
    });
  }
}
