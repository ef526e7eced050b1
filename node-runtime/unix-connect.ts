/**
 * Connects to a unix socket of an agent or a launcher. One whose queue of callers is full (EAGAIN) is busy, not gone: it is asked again
 * until it has room.
 */
import { createConnection, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DsecError } from '#bus/errors.ts';

/** Every caller asks again at a time of its own: between half and the whole of it. */
const PAUSE_MS = 20;
/** A process that takes no call for so long is stuck, or the machine is. */
const PATIENCE_MS = 10_000;

/** Rejects with OVERLOADED when the queue stays full, else with the system's error. */
export const connectUnix = async (path: string, options: { readonly allowHalfOpen?: boolean } = {}): Promise<Socket> => {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await connectOnce(path, options.allowHalfOpen ?? false);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EAGAIN') throw thrown;
      if (performance.now() > giveUpAt)
        throw DsecError.of('OVERLOADED', 'an agent of the node takes no more calls at the moment; try again', { cause: thrown });
      await delay(PAUSE_MS * (0.5 + Math.random() / 2));
    }
  }
};

/** Refused, never there, or gone with the call in its queue. */
const NOBODY: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOENT', 'ECONNRESET']);

/** Whether what `connectUnix` rejected with says that nobody listens there any more. */
export const nobodyListens = (thrown: unknown): boolean => NOBODY.has((thrown as NodeJS.ErrnoException | null)?.code);

const connectOnce = (path: string, allowHalfOpen: boolean): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ path, allowHalfOpen });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });
