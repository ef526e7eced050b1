/**
 * The way between one process and the bus: a connection, so in each direction what was sent first arrives first, unless the link
 * is told to break that too. Some messages are lost, some come twice, none passes while the link is cut. A process that ends
 * takes its link with it: what it had sent still arrives, what was on its way to it does not.
 */
import type { Random } from '../kernel/random.ts';
import type { VirtualTime } from '../kernel/virtual-time.ts';

/** What a link does to a message; `…PerMille` of a thousand. */
export type LinkQuality = {
  readonly minUs: number;
  readonly maxUs: number;
  readonly lossPerMille: number;
  readonly doublePerMille: number;
  /** Messages that overtake and are overtaken: a reconnection in between, another route. */
  readonly strayPerMille: number;
};
/** A quiet data centre. */
export const GOOD_LINK: LinkQuality = { minUs: 100, maxUs: 400, lossPerMille: 0, doublePerMille: 0, strayPerMille: 0 };

export class Link {
  readonly #time: VirtualTime;
  readonly #random: Random;
  quality: LinkQuality;
  /** Partitioned from the bus: both directions. */
  cut = false;
  #open = true;
  /** When the newest message arrives, in each direction. */
  #sentUs = 0;
  #receivedUs = 0;

  constructor(time: VirtualTime, random: Random, quality: LinkQuality = GOOD_LINK) {
    this.#time = time;
    this.#random = random;
    this.quality = quality;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** The process is gone. */
  close(): void {
    this.#open = false;
  }

  /** To the bus. `lost` runs at once when the message will never arrive; its sender learns it only by waiting in vain. */
  send(label: string, arrive: () => void, lost: () => void = nothing): void {
    if (!this.#carries()) {
      lost();
      return;
    }
    this.#time.after(this.#sendUs(), label, () => (this.cut ? lost() : arrive()));
    if (this.#random.chance(this.quality.doublePerMille)) this.#time.after(this.#sendUs(), label, () => (this.cut ? undefined : arrive()));
  }

  /** From the bus. */
  receive(label: string, arrive: () => void, lost: () => void = nothing): void {
    if (!this.#carries()) {
      lost();
      return;
    }
    this.#time.after(this.#receiveUs(), label, () => {
      if (this.cut) lost();
      else if (this.#open) arrive();
    });
    if (this.#random.chance(this.quality.doublePerMille)) this.#time.after(this.#receiveUs(), label, () => (this.#open && !this.cut ? arrive() : undefined));
  }

  #carries(): boolean {
    return this.#open && !this.cut && !this.#random.chance(this.quality.lossPerMille);
  }

  #sendUs(): number {
    const arriveUs = this.#arriveUs(this.#sentUs);
    this.#sentUs = Math.max(this.#sentUs, arriveUs);
    return arriveUs - this.#time.nowUs;
  }

  #receiveUs(): number {
    const arriveUs = this.#arriveUs(this.#receivedUs);
    this.#receivedUs = Math.max(this.#receivedUs, arriveUs);
    return arriveUs - this.#time.nowUs;
  }

  #arriveUs(newestUs: number): number {
    const { minUs, maxUs, strayPerMille } = this.quality;
    const arriveUs = this.#time.nowUs + this.#random.between(minUs, maxUs);
    return this.#random.chance(strayPerMille) ? arriveUs : Math.max(arriveUs, newestUs + 1);
  }
}

const nothing = (): void => {};
