/** Time and chance of the SDK, so that tests can script both. */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
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
      const off = onAbort(signal, () => {
        clearTimeout(timer);
        reject(cancelled());
      });
      const timer = setTimeout(() => {
        off();
        resolve();
      }, delayMs);
    }),
};

export const cancelled = (): DsecError => DsecError.of('CANCELLED', 'the caller aborted the call');

/** Listens until the returned function is called. One signal may rightly end thousands of calls, so many listeners are no leak. */
export const onAbort = (signal: AbortSignal | undefined, listener: () => void): (() => void) => {
  if (!signal) return () => {};
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
};

/** Settles as `work` does, or rejects with CANCELLED when `signal` aborts first; `work` itself goes on unobserved. */
export const abortable = <T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    const off = onAbort(signal, () => reject(cancelled()));
    if (signal.aborted) reject(cancelled());
    work.then(resolve, reject).finally(off);
  });
};

/** A client key for a call whose caller named none: one use, never guessed. */
export const randomKey = (): string => randomBytes(16).toString('hex');
