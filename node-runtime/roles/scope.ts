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
