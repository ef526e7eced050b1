/** A connection to a server inside, made by the sandbox's agent: DIAL on a connection of its own, then the server's bytes. */
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { DsecError } from '#bus/errors.ts';
import type { PortTarget } from '#bus/op/ports.ts';
import { connectUnix } from '../unix-connect.ts';
import { encodeRequest, HEADER_BYTES, REQUEST, takeFrames } from '../aether/wire.ts';

const REQUEST_ID = 1;
/** DIALED: its header and an errno. */
const ANSWER_BYTES = HEADER_BYTES + 4;

export const nameOf = (target: PortTarget): string => (typeof target === 'number' ? `port ${target}` : `socket ${target}`);

/** Rejects with PORT_CLOSED when nobody listens there, DEADLINE_EXCEEDED, OVERLOADED, SANDBOX_ENDED. */
export const dialInside = async (socketPath: string, target: PortTarget): Promise<Socket> => {
  let socket: Socket | undefined;
  try {
    socket = await connectUnix(socketPath, { allowHalfOpen: true });
    socket.write(encodeRequest(REQUEST.dial, REQUEST_ID, [typeof target === 'number' ? ['port', target] : ['unix', target]]));
    const errno = await answerOf(socket);
    if (errno !== 0) throw dialError(errno, target);
    return socket;
  } catch (thrown) {
    socket?.destroy();
    if (thrown instanceof DsecError) throw thrown;
    throw DsecError.of('SANDBOX_ENDED', `the agent of the sandbox went away while it connected to ${nameOf(target)}`, {
      cause: thrown,
      fault: 'infra',
      outcome: 'not_applied',
    });
  }
};

/** What follows the answer stays in the socket. */
const answerOf = (socket: Socket): Promise<number> =>
  new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      socket.off('readable', look).off('error', fail).off('close', left).off('end', left);
      act();
    };
    const fail = (error: Error): void => settle(() => reject(error));
    const left = (): void => fail(new Error('closed before it answered'));
    const look = (): void => {
      const bytes = socket.read(ANSWER_BYTES) as Buffer | null;
      if (!bytes) return;
      try {
        takeFrames(bytes, (frame) => {
          if (frame.type !== 'dialed') throw new Error(`'${frame.type}' is no answer to DIAL`);
          settle(() => resolve(frame.errno));
        });
      } catch (error) {
        fail(error as Error);
      }
    };
    socket.on('readable', look).once('error', fail).once('close', left).once('end', left);
  });

const { ECONNREFUSED, ENOENT, ENOTDIR, EAGAIN, ETIMEDOUT, EMFILE, ENFILE, EACCES, ENOTSOCK } = constants.errno;
const CLOSED: ReadonlySet<number> = new Set([ECONNREFUSED, ENOENT, ENOTDIR, ENOTSOCK]);
const FULL: ReadonlySet<number> = new Set([EMFILE, ENFILE, EAGAIN]);

const dialError = (errno: number, target: PortTarget): DsecError => {
  const details = { target, errno: Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? String(errno) };
  const where = nameOf(target);
  if (CLOSED.has(errno))
    return DsecError.of('PORT_CLOSED', `nothing listens on ${where} of the sandbox; start a server there first, or wait until it is up`, { details });
  if (errno === ETIMEDOUT)
    return DsecError.of('DEADLINE_EXCEEDED', `${where} of the sandbox takes no connection; its server is stuck or overloaded`, {
      details,
      fault: 'agent',
      outcome: 'not_applied',
    });
  if (FULL.has(errno)) return DsecError.of('OVERLOADED', `no more connections to ${where} of the sandbox now; end some first`, { details });
  if (errno === EACCES) return DsecError.of('PORT_CLOSED', `${where} of the sandbox may not be connected to`, { details, retry: 'never' });
  return DsecError.of('CONNECTION_BROKEN', `${where} of the sandbox cannot be connected to (${details.errno})`, { details, outcome: 'not_applied' });
};
