/** Time and chance of the SDK, so that tests can script both. */
import { randomBytes } from 'node:crypto';
import { DsecError } from '#bus/errors.ts';

export interface Clock {
  now(): number;
  /** Rejects with CANCELLED as soon as `signal` aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** 0 ≤ x < 1. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(cancelled());
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(cancelled());
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, delayMs);
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
};

export const cancelled = (): DsecError => DsecError.of('CANCELLED', 'the caller aborted the call');

/** Settles as `work` does, or rejects with CANCELLED when `signal` aborts first; `work` itself goes on unobserved. */
export const abortable = <T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(cancelled());
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
};

/** A client key for a call whose caller named none: one use, never guessed. */
export const randomKey = (): string => randomBytes(16).toString('hex');
