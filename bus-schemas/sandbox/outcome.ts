/** What a sandbox's state means for whoever asked for it: it came to run, it never will, or that is still open. */
import { type WireError, wireError } from '../errors.ts';
import type { SandboxState } from './state.ts';

export type CreateOutcome = { readonly ok: true; readonly state: SandboxState } | { readonly ok: false; readonly error: WireError };

/** Null while the sandbox is still on its way to running, or on its way to an end that will say why. */
export const outcomeOf = (state: SandboxState): CreateOutcome | null => {
  switch (state.status) {
    case 'admitted':
    case 'preparing':
    case 'starting':
    case 'stopping':
      return null;
    case 'running':
    case 'pausing':
    case 'paused':
    case 'resuming':
    case 'snapshotting':
      return { ok: true, state };
    case 'failed':
      return { ok: false, error: state.failure ?? wireError('SANDBOX_FAILED', `sandbox ${state.id} failed; \`dsec events ${state.id}\` shows how`) };
    case 'stopped':
      return {
        ok: false,
        error: wireError('SANDBOX_ENDED', `sandbox ${state.id} is stopped (${state.stopReason ?? 'requested'}); create another with a new key`, {
          details: { sandboxId: state.id },
        }),
      };
  }
};
