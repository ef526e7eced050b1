/** What a nats-server says of itself before anybody has signed in: the first line of every connection. */
import { connect } from 'node:net';
import { z } from 'zod';

const Greeting = z.object({
  server_name: z.string(),
  version: z.string(),
  port: z.number(),
  jetstream: z.boolean().default(false),
  ldm: z.boolean().default(false),
});
export type Greeting = z.infer<typeof Greeting>;

/** Longest greeting: a cluster's list of addresses is part of it. */
const MAX_GREETING_BYTES = 65_536;

/** The server's greeting, or undefined when none comes in time. */
export const greetingOf = (port: number, timeoutMs: number, host = '127.0.0.1'): Promise<Greeting | undefined> =>
  new Promise((resolve) => {
    const socket = connect(port, host);
    let text = '';
    const settle = (greeting: Greeting | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(greeting);
    };
    const timer = setTimeout(() => settle(undefined), timeoutMs);
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\r\n')) settle(parseGreeting(text));
      else if (text.length > MAX_GREETING_BYTES) settle(undefined);
    });
    socket.on('error', () => settle(undefined));
    socket.on('close', () => settle(undefined));
  });

const parseGreeting = (text: string): Greeting | undefined => {
  const json = /^INFO (\{.*\})\s*\r\n/.exec(text)?.[1];
  try {
    return json ? Greeting.safeParse(JSON.parse(json)).data : undefined;
  } catch {
    return undefined;
  }
};
