/** Which instances of a role are there, as `node-runtime/roles/presence.ts` hears them; `owns` is the highest hash of both names. */
import { hashOf, mix } from '../kernel/random.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Process } from './process.ts';

export class SimPresence {
  readonly #process: Process;
  readonly #instance: string;
  readonly #onChange: () => void;
  /** Instance → when it was heard last. */
  readonly #heard = new Map<string, number>();

  constructor(process: Process, role: string, onChange: () => void) {
    this.#process = process;
    this.#instance = process.freshId();
    this.#onChange = onChange;
    this.#heard.set(this.#instance, Number.POSITIVE_INFINITY);
    const channel = `presence.${role}`;
    process.bus.subscribe<string>(channel, process.link, (instance) => this.#hear(instance));
    const beat = () => process.bus.publish(process.link, channel, this.#instance);
    beat();
    process.every(HOST_LIMITS.presenceEveryMs, 'presence', () => {
      beat();
      this.#forgetSilent();
    });
  }

  get count(): number {
    return this.#heard.size;
  }

  owns(actorId: string): boolean {
    const weight = (instance: string) => mix(hashOf(actorId, hashOf(instance)));
    const own = weight(this.#instance);
    for (const other of this.#heard.keys()) if (other !== this.#instance && weight(other) > own) return false;
    return true;
  }

  #hear(instance: string): void {
    if (instance === this.#instance) return;
    const isKnown = this.#heard.has(instance);
    this.#heard.set(instance, this.#process.clock.monotonicMs());
    if (!isKnown) this.#onChange();
  }

  #forgetSilent(): void {
    const before = this.#heard.size;
    const oldest = this.#process.clock.monotonicMs() - HOST_LIMITS.presenceTimeoutMs;
    for (const [instance, at] of this.#heard) if (at < oldest) this.#heard.delete(instance);
    if (this.#heard.size !== before) this.#onChange();
  }
}
