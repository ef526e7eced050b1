/** Questions between roles over core messages: to one of those who serve a channel, answered into the asker's inbox, or not at all. */
import type { Process } from './process.ts';

type Question = { readonly id: number; readonly replyTo: string; readonly asked: unknown };
type Answer = { readonly id: number; readonly answer: unknown };

export class Asker {
  readonly #process: Process;
  readonly #inbox: string;
  readonly #waiting = new Map<number, (answer: unknown) => void>();
  #next = 1;

  constructor(process: Process) {
    this.#process = process;
    this.#inbox = `inbox.${process.name}.${process.freshId()}`;
    process.bus.subscribe<Answer>(this.#inbox, process.link, ({ id, answer }) => this.#waiting.get(id)?.(answer));
  }

  /** Null when nobody has answered in time; whether it was done is not known then. */
  ask<A>(channel: string, asked: unknown, timeoutMs: number, done: (answer: A | null) => void): void {
    const { bus, link, clock, random } = this.#process;
    const id = this.#next++;
    const hear = (answer: A | null) => {
      if (!this.#waiting.delete(id)) return;
      clock.cancel(timer);
      done(answer);
    };
    const timer = this.#process.after(timeoutMs, 'no answer', () => hear(null));
    this.#waiting.set(id, (answer) => hear(answer as A));
    bus.publishToOne(link, channel, { id, replyTo: this.#inbox, asked } satisfies Question, random);
  }
}

export const serve = <Q, A>(process: Process, channel: string, handle: (asked: Q, answer: (answer: A) => void) => void): void => {
  const { bus, link } = process;
  bus.subscribe<Question>(channel, link, ({ id, replyTo, asked }) =>
    handle(asked as Q, (answer) => bus.publish(link, replyTo, { id, answer } satisfies Answer)),
  );
};
