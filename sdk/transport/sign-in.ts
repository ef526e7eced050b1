/**
 * Why nobody lets a client in. A cluster's servers ask IAM who connects; while no iam runs they say nothing for seconds and then
 * what they say of bad credentials. So a refusal counts only when it came at once; a server that greets and then is silent waits for IAM.
 */
import { connect as connectTcp } from 'node:net';
import { errors } from '@nats-io/transport-node';
import { SDK_LIMITS } from '../limits.ts';

/** `refused`: the credentials are bad. `silent`: servers are there, and nobody tells them who this is. `away`: no server is there. */
export type WhyNot = 'refused' | 'silent' | 'away';

const isRefusal = (cause: unknown): boolean => cause instanceof errors.AuthorizationError || cause instanceof errors.UserAuthenticationExpiredError;

/** Of one try that began `tookMs` ago, over all servers of the context. */
export const isRefusedAtOnce = (cause: unknown, tookMs: number): boolean => isRefusal(cause) && tookMs < SDK_LIMITS.signInTimeoutMs;

/** Asks one server after another, so that one which is cut off does not make the others look slow. `signIn` rejects when it is not let in. */
export const whyNot = async (servers: readonly string[], signIn: (server: string) => Promise<void>, now: () => number): Promise<WhyNot> => {
  let why: WhyNot = 'away';
  for (const server of servers) {
    if (!(await isGreeting(server))) continue;
    why = 'silent';
    const since = now();
    try {
      await signIn(server);
    } catch (cause) {
      if (isRefusedAtOnce(cause, now() - since)) return 'refused';
    }
  }
  return why;
};

/** A nats-server speaks first. */
const isGreeting = (server: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(server.includes('://') ? server : `nats://${server}`);
    const socket = connectTcp({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 4_222) });
    const end = (greets: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(greets);
    };
    const timer = setTimeout(() => end(false), SDK_LIMITS.greetingTimeoutMs);
    socket.once('data', (data) => end(data.toString('latin1').startsWith('INFO ')));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
