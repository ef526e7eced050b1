/**
 * What an Edge needs from a backend: bring a sandbox to a state, and know what is really there. @paper §2.2
 *
 * Every method may be repeated and may be interrupted half-way; `ensure…` means "make it so". A final refusal is a
 * `DsecError` whose `retry` is `never`; anything else is tried again until the state's deadline passes.
 */
import type { WireError } from '#bus/errors.ts';
import type { LayerDigest, SandboxId, SnapshotId } from '#bus/ids.ts';
import type { ScrubRules, SnapshotFacts, SnapshotPurpose } from '#bus/sandbox/snapshot.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';

export type SnapshotOrder = { readonly snapshotId: SnapshotId; readonly scrub: ScrubRules; readonly purpose: SnapshotPurpose };

/** Says when a newer state has overtaken the work. The signal is made when it is first asked for: most work is over before. */
export type Overtaking = { readonly signal: AbortSignal };

export interface SandboxBackend {
  /** Brings the sandbox's layers to this node. LAYER_NOT_FOUND, NO_SPACE; BUS_UNAVAILABLE while the layer store cannot be reached. */
  ensurePrepared(sandbox: SandboxState, overtaking: Overtaking): Promise<void>;
  /** Brings the sandbox to life; answers with its first process when it can take commands. */
  ensureLaunched(sandbox: SandboxState, overtaking: Overtaking): Promise<{ readonly pid: number }>;
  /**
   * Holds the channel to a live sandbox, whose commands are made to rest (`frozen`), to run, or left as they are (null: that is
   * changing). Resolves with the reason when the sandbox is gone, with null when aborted.
   */
  watch(sandbox: SandboxState, frozen: boolean | null, overtaking: Overtaking): Promise<WireError | null>;
  /** Ends every process and frees mounts, groups, addresses and the writable layer. */
  ensureDestroyed(sandbox: SandboxState): Promise<void>;
  /** Everything in it rests, and its memory is given back; null when that is not known, or goes on. */
  ensurePaused(sandbox: SandboxState): Promise<{ readonly memoryGivenBackMiB: number | null }>;
  /** It runs again. NODE_FULL when the node has no memory for it; it stays as it is then. */
  ensureResumed(sandbox: SandboxState): Promise<void>;
  /** Saves the writable layer under the snapshot's name, once, unless aborted before; answers with the new layer's digest. The sandbox goes on as it was. */
  ensureSnapshot(sandbox: SandboxState, order: SnapshotOrder, overtaking: Overtaking): Promise<{ readonly layer: LayerDigest; readonly facts: SnapshotFacts }>;
  /** What the kernel really has, whatever the log says. */
  present(): Promise<SandboxId[]>;
  /** Ends what no log knows: left by a crash between two steps. */
  destroyUnknown(id: SandboxId): Promise<void>;
}
