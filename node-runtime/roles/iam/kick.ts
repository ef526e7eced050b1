/**
 * Ends the connections of keys that are no more: a token that was given out before would be good until its end. A server does not
 * say which secret a connection was opened with, so their tokens are short instead (`secretTokenLifeMs`).
 */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { CLIENTS_ACCOUNT } from '#infra/nats/config.ts';
import type { Directory } from '#actors/project/directory.ts';
import type { Log } from '../../log/log.ts';
import { IAM_LIMITS } from './limits.ts';

const Connections = z.object({
  server: z.object({ id: z.string() }),
  data: z.object({ connections: z.array(z.object({ cid: z.number(), authorized_user: z.string().optional() })).default([]) }),
});

/** Asks every server for its clients and sends those away whose credential is not known any more. `system`: a connection of the system account. */
export class Kicker {
  readonly #system: NatsConnection;
  readonly #directory: Directory;
  readonly #log: Log;
  readonly #inbox = createInbox();
  readonly #subscription: { unsubscribe(): void };
  #timer: NodeJS.Timeout | undefined;

  constructor(system: NatsConnection, directory: Directory, log: Log) {
    this.#system = system;
    this.#directory = directory;
    this.#log = log;
    this.#subscription = system.subscribe(this.#inbox, {
      callback: (error, message) => {
        if (!error) this.#judge(message.string());
      },
    });
  }

  /** Many changes together are one question. */
  changed(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#system.isClosed()) return;
      const question = { acc: CLIENTS_ACCOUNT, auth: true, limit: IAM_LIMITS.connectionsPerServer };
      this.#system.publish('$SYS.REQ.SERVER.PING.CONNZ', JSON.stringify(question), { reply: this.#inbox });
    }, IAM_LIMITS.kickGatherMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#subscription.unsubscribe();
  }

  #judge(text: string): void {
    const found = Connections.safeParse(JSON.parse(text));
    if (!found.success) return;
    for (const { cid, authorized_user: key } of found.data.data.connections) {
      if (!key || !/^U[A-Z2-7]{55}$/.test(key) || this.#directory.holderOf(key)) continue;
      this.#log.info('client.kicked', { cid, server: found.data.server.id });
      this.#system.publish(`$SYS.REQ.SERVER.${found.data.server.id}.KICK`, JSON.stringify({ cid }), { reply: this.#inbox }); // unheard without a reply subject
    }
  }
}
