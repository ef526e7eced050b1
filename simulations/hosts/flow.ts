/**
 * Steps that wait for each other, written one below the other as production's `await`s are: a generator yields what it waits for, and
 * goes on in the very step in which the answer comes. A process that ends leaves its flows where they stand.
 */
export type Wait<T> = (done: (value: T) => void) => void;
export type Flow<T> = Generator<Wait<never>, T, never>;

/** `const answer = yield* until<Answer>((done) => ask(…, done))`. */
export function* until<T>(wait: Wait<T>): Flow<T> {
  return yield wait as unknown as Wait<never>;
}

export const start = <T>(flow: Flow<T>, done: (value: T) => void = () => {}): void => {
  const go = (value?: unknown): void => {
    const { done: isOver, value: next } = flow.next(value as never);
    if (isOver) return done(next);
    let open = true;
    next((answer: unknown) => {
      if (!open) return; // a doubled answer
      open = false;
      go(answer);
    });
  };
  go();
};

/** All at once; done when the last one is. */
export const together =
  (flows: readonly Flow<unknown>[]): Wait<null> =>
  (done) => {
    let left = flows.length;
    if (left === 0) return done(null);
    for (const flow of flows)
      start(flow, () => {
        left -= 1;
        if (left === 0) done(null);
      });
  };
