/** What every part of this adapter shares: one connection, one inbox for requests, one place to report to. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Acknowledgements } from './acknowledgements.ts';
import type { JetStreamApi } from './api.ts';
import type { ConnectionWatch } from './connection.ts';
import type { Mux } from './mux.ts';

/** One structured line about something that went wrong and is being mended; nobody waits for it. */
export type BusReport = { readonly event: string; readonly code?: string; readonly message?: string; readonly [field: string]: unknown };

export type BusContext = {
  readonly nc: NatsConnection;
  readonly watch: ConnectionWatch;
  readonly mux: Mux;
  readonly api: JetStreamApi;
  readonly acknowledgements: Acknowledgements;
  /** Inboxes must lie below what the connection's user may subscribe to. */
  readonly inboxPrefix: string | undefined;
  readonly report: (line: BusReport) => void;
};
