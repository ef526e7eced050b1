/** What the SDK speaks with, without its manners: for tests that ask what no client of ours would. */
import { resolveContext } from '#sdk/context.ts';
import { Session } from '#sdk/session.ts';
import { connectBus } from '#sdk/transport/nats-bus.ts';

export const openRawSession = async (contextFile: string): Promise<Session> => {
  const context = resolveContext({ contextFile });
  return new Session(await connectBus(context, { name: 'raw', timeoutMs: 10_000 }), context.project);
};
