/**
 * Decides when an Edge's silence is a loss: its lease stood unrenewed for longer than it lasts, as this watcher saw it.
 *
 * Counts on the watcher's own monotonic clock, from the moment it saw the lease: which is later than the moment from which the
 * holder counts, so the holder has fenced itself before anybody declares it lost (INV-FENCE). Whatever keeps the watcher from
 * seeing renewals (its own start, an outage) starts the count again. Before a loss is declared the log is read for a while: a
 * bus that could not store renewals must not be taken for Edges that did not send any.
 *
 * Holds no truth: a watcher that is started again sees every lease as new, and declares a loss a lease later at most.
 * @paper §3.2
 */
import type { EdgeCommand, EdgeState } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { DurationMs } from '#bus/units.ts';
import { LEASE_POLICY } from './limits.ts';

type Seen = { readonly state: EdgeState; sinceMs: number; readableSinceMs: number | null };
type DeclareLost = Extract<EdgeCommand, { type: 'DeclareLost' }>;

export class LeaseWatch {
  readonly #seen = new Map<EdgeName, Seen>();

  /** A commit of an Edge, from the log or republished. Older news changes nothing. */
  learned(state: EdgeState, atMs: number): void {
    const known = this.#seen.get(state.name)?.state;
    if (known && isOlderOrSame(state, known)) return;
    this.#seen.set(state.name, { state, sinceMs: atMs, readableSinceMs: null });
  }

  /** This watcher could not hear for a while: what it did not hear may have been said. */
  interrupted(atMs: number): void {
    for (const seen of this.#seen.values()) {
      seen.sinceMs = atMs;
      seen.readableSinceMs = null;
    }
  }

  /** Edges whose lease stood for too long: the log has to be read for each of them, and `confirmed` or `unreadable` told. */
  overdue(atMs: number): EdgeName[] {
    return [...this.#seen.values()].filter((seen) => isOverdue(seen, atMs)).map(({ state }) => state.name);
  }

  /** The log was read and says this of the Edge. Answers with the finding once it stands. */
  confirmed(state: EdgeState, atMs: number): DeclareLost | null {
    this.learned(state, atMs);
    const seen = this.#seen.get(state.name);
    if (!seen || !isOverdue(seen, atMs)) return null;
    seen.readableSinceMs ??= atMs;
    if (atMs - seen.readableSinceMs < LEASE_POLICY.confirmMs) return null;
    const { generation, leaseUntil, leaseMs } = seen.state;
    const silentMs = Math.floor(atMs - seen.sinceMs) as DurationMs;
    const reason = `its lease of ${leaseMs} ms was not renewed for ${silentMs} ms`;
    return { type: 'DeclareLost', generation, leaseUntil, silentMs, reason };
  }

  /** The log could not be read: nothing is known, and the confirmation starts again. */
  unreadable(edge: EdgeName): void {
    const seen = this.#seen.get(edge);
    if (seen) seen.readableSinceMs = null;
  }
}

const isOverdue = ({ state, sinceMs }: Seen, atMs: number): boolean => state.status === 'active' && atMs - sinceMs > state.leaseMs + LEASE_POLICY.graceMs;

const isOlderOrSame = (state: EdgeState, known: EdgeState): boolean => {
  if (state.generation !== known.generation) return state.generation < known.generation;
  // Within a generation a lease only grows, and its loss or return is the end of it.
  return known.status !== 'active' || (state.status === 'active' && state.leaseUntil <= known.leaseUntil);
};
