/**
 * Which request actors a placement keeps: one is needed again only by a redelivery or a report, so the oldest go, bounded by how many
 * there are and by the sandboxes that they tell of, which is what they weigh.
 */
import type { ActorAddress } from '#bus/subjects.ts';
import { RECENT_LIMITS } from './limits.ts';

type Kept = { readonly address: ActorAddress; readonly items: number };

export class RecentRequests {
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();
  #items = 0;

  /** It was used just now, and has so many items. */
  remember(address: ActorAddress, items: number): void {
    this.#drop(address.id);
    this.#kept.set(address.id, { address, items });
    this.#items += items;
  }

  /** Lets go of the oldest while there are too many, except of those that `evict` cannot spare yet; answers whom. */
  letGo(evict: (address: ActorAddress) => boolean): string[] {
    const gone: string[] = [];
    for (const [id, { address }] of this.#kept) {
      if (this.#kept.size <= RECENT_LIMITS.requests && this.#items <= RECENT_LIMITS.items) break;
      if (!evict(address)) continue;
      this.#drop(id);
      gone.push(id);
    }
    return gone;
  }

  #drop(id: string): void {
    this.#items -= this.#kept.get(id)?.items ?? 0;
    this.#kept.delete(id);
  }
}
