/** A cluster that has just started, or has just lost a server, elects leaders first; nothing can be asked of it meanwhile. */
import { setTimeout as delay } from 'node:timers/promises';
import { toWireError } from '#bus/errors.ts';
import type { Log } from '../log/log.ts';

/** How long a role waits for a bus that elects, and how often it asks: below what its supervisor waits for `ready`. */
const BUS_START_MS = 45_000;
const BUS_RETRY_MS = 500;

export const whenBusAnswers = async <T>(ask: () => Promise<T>, log: Log): Promise<T> => {
  for (const until = performance.now() + BUS_START_MS; ; await delay(BUS_RETRY_MS)) {
    try {
      return await ask();
    } catch (thrown) {
      const { code, message } = toWireError(thrown);
      if (code !== 'BUS_UNAVAILABLE' || performance.now() > until) throw thrown;
      log.info('bus.not_ready', { message });
    }
  }
};
