/** What a process of roles and whoever starts it agree on: the roles, the messages between them, the exit codes. */
import type { ClientUser } from '#infra/nats/config.ts';

export const SERVED_ROLES = ['apiserver', 'iam', 'placement', 'watcher', 'jobs', 'edge'] as const;
export type ServedRole = (typeof SERVED_ROLES)[number];

/** Messages between `dsec up` and its roles. */
export type FromRole =
  | { readonly type: 'ready' }
  | { readonly type: 'draining'; readonly left: number }
  | { readonly type: 'drained' }
  /** Who may connect: the single machine's bus is configured from it. */
  | { readonly type: 'clients'; readonly clients: readonly ClientUser[] }
  | { readonly type: 'failed'; readonly code: string; readonly message: string };
export type ToRole = { readonly type: 'drain' };

/** Exit code of an Edge whose name another process has taken; its supervisor must not restart it. */
export const SUPERSEDED_EXIT = 77;

/** Exit code of an Edge that was declared lost: it is started again, and registers as a new generation. */
export const LOST_EXIT = 75;
