/** Resources of a role as Effect scopes: what is opened in order is closed in reverse order, on every path. */
import { Effect, Exit, Scope } from 'effect';

/** Opens with `open`; `close` runs when the scope ends. */
export const acquire = <A>(open: () => Promise<A> | A, close: (a: A) => Promise<void> | void): Effect.Effect<A, unknown, Scope.Scope> =>
  Effect.acquireRelease(Effect.tryPromise({ try: async () => open(), catch: (thrown) => thrown }), (a) => Effect.promise(async () => close(a)));

/** A step without anything to close. */
export const step = <A>(work: () => Promise<A>): Effect.Effect<A, unknown> => Effect.tryPromise({ try: work, catch: (thrown) => thrown });

/** Runs a scoped program and hands out its value with the function that closes everything; closes at once when it fails. */
export const open = async <A>(program: Effect.Effect<A, unknown, Scope.Scope>): Promise<{ value: A; close: () => Promise<void> }> => {
  const scope = await Effect.runPromise(Scope.make());
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void));
  const exit = await Effect.runPromiseExit(Scope.provide(scope)(program));
  if (Exit.isSuccess(exit)) return { value: exit.value, close };
  await close();
  const failure = exit.cause.reasons
    .map((reason) => ('error' in reason ? reason.error : 'defect' in reason ? reason.defect : undefined))
    .find((e) => e !== undefined);
  throw failure ?? new Error('start was interrupted');
};

/** How a platform ends: with its sandboxes drained, or leaving them to go on. */
export type Ending = { drain: boolean };
export type Endable = { close(): Promise<void>; closeKeepingSandboxes(): Promise<void> };

/** As `open`, with two ways to end it; the first that is taken counts. */
export const openEndable = async <A extends object>(program: (ending: Ending) => Effect.Effect<A, unknown, Scope.Scope>): Promise<A & Endable> => {
  const ending: Ending = { drain: true };
  const { value, close } = await open(program(ending));
  let closed: Promise<void> | undefined;
  const closeOnce = (drain: boolean) => {
    ending.drain = drain;
    closed ??= close();
    return closed;
  };
  return { ...value, close: () => closeOnce(true), closeKeepingSandboxes: () => closeOnce(false) };
};
