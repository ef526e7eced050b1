/** What an Edge asks of the backend of its node beside the port: whom operations go to, and what it must be told. */
import type { SandboxId } from '#bus/ids.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { SandboxBackend } from '#actors/ports/sandbox-backend.ts';
import type { OpHandler } from '../roles/edge/ops.ts';

export interface NodeBackend extends SandboxBackend {
  /** What holds for a sandbox from now on. */
  follow(sandbox: SandboxState): void;
  /** Newest command activity, ms since the epoch; 0 when nothing is known since this process started. */
  activityAt(id: SandboxId): number;
  /** Stops or lets run every process of the live sandboxes: what an Edge does that has lost its lease. */
  freezeAll(frozen: boolean): Promise<void>;
  /** Gives back the swap that this node made for paused sandboxes. */
  removeSwap(): Promise<void>;
  /** What answers operations on a live sandbox; undefined when there is nothing. */
  handler(id: SandboxId): Promise<OpHandler | undefined>;
  /** What still answers about a sandbox that has ended. */
  endedHandler(sandbox: SandboxState): OpHandler | undefined;
}
