/**
 * Which rollouts of a job have an open turn, and which have ended: what a trainer is told, each once, in the order it is learnt.
 *
 * Pure data. News comes from commits as they happen and from lists; both may repeat and overtake each other, versions order them.
 */
import type { RolloutId } from '#bus/ids.ts';
import { TRAINER_LIMITS } from './limits.ts';

export type OpenTurnNews = { readonly id: RolloutId; readonly version: number; readonly turn: number; readonly request?: { readonly value: unknown } };
export type Place = { readonly id: RolloutId; readonly turn: number; readonly request: { readonly value: unknown } | undefined };

export class TurnInbox {
  /** Newest version heard per rollout. */
  readonly #versions = new Map<RolloutId, number>();
  /** Turns not yet taken, oldest first. */
  readonly #waiting = new Map<RolloutId, Place>();
  /** Newest turn given to the trainer per rollout: given once, however often it is heard of. */
  readonly #given = new Map<RolloutId, number>();
  readonly #ended: RolloutId[] = [];
  readonly #hasEnded = new Set<RolloutId>();
  #requestsHeld = 0;

  /** True when there is something new to take. */
  opened({ id, version, turn, request }: OpenTurnNews): boolean {
    if (!this.#isNews(id, version) || (this.#given.get(id) ?? -1) >= turn) return false;
    const known = this.#waiting.get(id);
    if (known?.turn === turn && (known.request || !request)) return false;
    this.#drop(id);
    const isHeld = request !== undefined && this.#requestsHeld < TRAINER_LIMITS.requestsHeld;
    if (isHeld) this.#requestsHeld += 1;
    this.#waiting.set(id, { id, turn, request: isHeld ? request : undefined });
    return true;
  }

  /** The rollout goes on, or another answered: its turn is not open any more. */
  moved(id: RolloutId, version: number): void {
    if (this.#isNews(id, version)) this.#drop(id);
  }

  /** An end is news once. */
  ended(id: RolloutId, version: number): void {
    this.moved(id, version);
    if (this.#hasEnded.has(id)) return;
    this.#hasEnded.add(id);
    this.#ended.push(id);
  }

  hasEnded(id: RolloutId): boolean {
    return this.#hasEnded.has(id);
  }

  takeTurn(): Place | undefined {
    for (const place of this.#waiting.values()) {
      this.#drop(place.id);
      this.#given.set(place.id, place.turn);
      return place;
    }
    return undefined;
  }

  takeEnded(): RolloutId | undefined {
    return this.#ended.shift();
  }

  /** An equal version may bring the same news again, by a list; it must not be taken for old. */
  #isNews(id: RolloutId, version: number): boolean {
    if (version < (this.#versions.get(id) ?? 0)) return false;
    this.#versions.set(id, version);
    return true;
  }

  #drop(id: RolloutId): void {
    if (this.#waiting.get(id)?.request) this.#requestsHeld -= 1;
    this.#waiting.delete(id);
  }
}
