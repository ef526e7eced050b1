/** Connections of the roles to the bus: reconnect for ever, and say so in the log. */
import { connect, errors, type NatsConnection, nkeyAuthenticator, usernamePasswordAuthenticator } from '@nats-io/transport-node';
import { DsecError } from '#bus/errors.ts';
import { busConnectionOptions } from '#adapters/jetstream/mod.ts';
import type { Log } from '../log/log.ts';

export type BusCredentials = { readonly nkeySeed: string } | { readonly user: string; readonly password: string };
export type BusTarget = { readonly servers: readonly string[]; readonly credentials?: BusCredentials | undefined };

const authenticatorOf = (credentials: BusCredentials | undefined) => {
  if (!credentials) return {};
  const authenticator =
    'nkeySeed' in credentials
      ? nkeyAuthenticator(new TextEncoder().encode(credentials.nkeySeed))
      : usernamePasswordAuthenticator(credentials.user, credentials.password);
  return { authenticator };
};

/** Connects, waiting for a server that is still starting. After `timeoutMs` BUS_UNAVAILABLE, or UNAUTHENTICATED where servers refused the key. */
export const connectBus = async (target: BusTarget, name: string, log: Log, timeoutMs = 20_000): Promise<NatsConnection> => {
  const until = performance.now() + timeoutMs;
  for (;;) {
    try {
      const connection = await connect({
        ...busConnectionOptions([...target.servers], name),
        ...authenticatorOf(target.credentials),
      });
      void watchStatus(connection, log);
      return connection;
    } catch (cause) {
      if (performance.now() > until) throw connectError(target, cause, timeoutMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
};

const connectError = ({ servers, credentials }: BusTarget, cause: unknown, timeoutMs: number): DsecError => {
  const where = `at ${servers.join(', ')}`;
  if (cause instanceof errors.AuthorizationError)
    return DsecError.of(
      'UNAUTHENTICATED',
      `the bus ${where} refuses ${credentials ? "this role's key" : 'a role without a key'}; give it a current one in its credentials directory, and the bus its public half`,
      { cause },
    );
  return DsecError.of('BUS_UNAVAILABLE', `no bus ${where} within ${timeoutMs / 1000} s: ${(cause as Error).message}. Is nats-server running?`, { cause });
};

const watchStatus = async (connection: NatsConnection, log: Log): Promise<void> => {
  for await (const status of connection.status()) {
    if (status.type === 'disconnect' || status.type === 'reconnect' || status.type === 'error')
      log.warn(`bus.${status.type}`, { detail: 'error' in status ? String(status.error) : undefined });
  }
};
