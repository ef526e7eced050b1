/** Bounded concurrency: many pieces of work, few at a time. */

/** Runs `work` on every item, at most `limit` at a time. A failure does not keep the others from their turn; the first one is thrown at the end. */
export const forEachLimited = async <T>(items: readonly T[], limit: number, work: (item: T) => Promise<void>): Promise<void> => {
  let next = 0;
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) await work(items[at] as T).catch((thrown: unknown) => failures.push(thrown));
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
};

/** At most `limit` pieces of work at a time, in the order of their arrival. */
export class Gate {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#inside += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift(); // the place is handed on, not given back
      if (next) next();
      else this.#inside -= 1;
    }
  }
}
