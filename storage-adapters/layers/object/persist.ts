/** Repeats one step over an outage of the bus; every step here may be repeated. */
import { DsecError } from '#bus/errors.ts';
import { OBJECT_LAYER_LIMITS } from './limits.ts';

export type Persist = {
  /** Waits for the connection, or a moment. */
  readonly settle: (signal?: AbortSignal) => Promise<void>;
  readonly outageMs?: number;
};

/** BUS_UNAVAILABLE when the outage outlasts the limit, CANCELLED; every other error at once. */
export const persist = async <T>(how: Persist, signal: AbortSignal | undefined, step: () => Promise<T>): Promise<T> => {
  const giveUpAt = performance.now() + (how.outageMs ?? OBJECT_LAYER_LIMITS.outageMs);
  for (;;) {
    throwIfCancelled(signal);
    try {
      return await step();
    } catch (thrown) {
      if (!isPassing(thrown) || performance.now() >= giveUpAt) throw thrown;
    }
    await how.settle(signal).catch(() => throwIfCancelled(signal));
  }
};

/** The bus is away, or its disk is full or slow for the moment. */
const isPassing = (thrown: unknown): boolean => thrown instanceof DsecError && (thrown.code === 'BUS_UNAVAILABLE' || thrown.code === 'OVERLOADED');

export const throwIfCancelled = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted) throw DsecError.of('CANCELLED', 'the transfer of a layer was cancelled');
};
