/** How long the log keeps a sandbox that has ended: a deleted one briefly, another as long as audits may ask for it. @paper §3.2 */
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';

export type Retention = { readonly deletedMs: number; readonly endedMs: number };

/** Time from which it may be forgotten, ms since the epoch; null while it lives. */
export const sandboxForgettableAt = ({ status, endedAt, forget }: SandboxState, { deletedMs, endedMs }: Retention): number | null =>
  !ENDED_STATUSES.has(status) || endedAt === null ? null : endedAt + (forget ? deletedMs : endedMs);
