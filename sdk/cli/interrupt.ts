/**
 * Ctrl-C or SIGTERM while a call is under way: the call is aborted, which ends what it has begun, and says so. A second one leaves
 * at once. Calls that follow a command's output have rules of their own (`stream-command.ts`).
 */
import { ERRORS } from '#bus/errors.ts';

export const abortedByInterrupt = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const abort = new AbortController();
  const onSignal = (): void => {
    if (abort.signal.aborted) process.exit(ERRORS.CANCELLED.exit);
    abort.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  try {
    return await work(abort.signal);
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
};
