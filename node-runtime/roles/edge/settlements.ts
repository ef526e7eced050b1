/**
 * Tells whoever waits what became of sandboxes being started: that they run, or never will. In memory only: who waits holds the
 * command that asked for it unacknowledged, and is asked again by the next process.
 */
import { DsecError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { type CreateOutcome, outcomeOf } from '#bus/sandbox/outcome.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';

type Listener = { readonly tell: (outcome: CreateOutcome) => void; readonly close: (error: DsecError) => void };

export class Settlements {
  readonly #listeners = new Map<SandboxId, Listener[]>();
  #closed = false;

  /** Takes note of each new state of each sandbox. */
  adopted(state: SandboxState): void {
    const listeners = this.#listeners.get(state.id);
    const outcome = listeners && outcomeOf(state);
    if (!listeners || !outcome) return;
    this.#listeners.delete(state.id);
    for (const { tell } of listeners) tell(outcome);
  }

  /** Calls `tell` once, when the sandbox settles; `close` when this process ends before. */
  follow(id: SandboxId, listener: Listener): void {
    if (this.#closed) listener.close(ending());
    else this.#listeners.set(id, [...(this.#listeners.get(id) ?? []), listener]);
  }

  close(): void {
    this.#closed = true;
    for (const listeners of this.#listeners.values()) for (const { close } of listeners) close(ending());
    this.#listeners.clear();
  }
}

const ending = (): DsecError => DsecError.of('EDGE_UNAVAILABLE', 'this process is shutting down; the next one goes on');
