/**
 * Who wants a sandbox's commands at rest, and so whether they are. Several may at once: a pause, a lost lease, a snapshot; they
 * run again when nobody does. Aether itself never rests, so that its deadline holds.
 *
 * Holds no truth: after a crash the sandbox's state says whether it is paused, and the first word about a sandbox settles what
 * the kernel has.
 */
import type { SandboxId } from '#bus/ids.ts';
import type { LauncherClient } from '../../launcher/client.ts';

export type Holder = 'paused' | 'fenced' | 'snapshot';
type Entry = { readonly holders: Set<Holder>; frozen: boolean | null; tail: Promise<void> };

export class Freezer {
  readonly #launcher: () => Promise<Pick<LauncherClient, 'freeze' | 'thaw'>>;
  readonly #entries = new Map<SandboxId, Entry>();

  constructor(launcher: () => Promise<Pick<LauncherClient, 'freeze' | 'thaw'>>) {
    this.#launcher = launcher;
  }

  /** Resolves when nothing of it runs any more. */
  hold(id: SandboxId, holder: Holder): Promise<void> {
    const entry = this.#entry(id);
    entry.holders.add(holder);
    return this.#settle(id, entry);
  }

  /** Resolves when it runs again, or when somebody else goes on holding it. */
  release(id: SandboxId, holder: Holder): Promise<void> {
    const entry = this.#entry(id);
    entry.holders.delete(holder);
    return this.#settle(id, entry);
  }

  /** This process launched it: it runs, and nobody needs to ask. */
  born(id: SandboxId): void {
    this.#entry(id).frozen = false;
  }

  /** Known to run: nothing has to be said to make it so. */
  runs(id: SandboxId): boolean {
    return this.#entries.get(id)?.frozen === false;
  }

  forget(id: SandboxId): void {
    this.#entries.delete(id);
  }

  #entry(id: SandboxId): Entry {
    const entry = this.#entries.get(id) ?? { holders: new Set<Holder>(), frozen: null, tail: Promise.resolve() };
    this.#entries.set(id, entry);
    return entry;
  }

  /** One request at a time and sandbox: a thaw must not overtake the freeze before it. What is wanted is read when its turn comes. */
  #settle(id: SandboxId, entry: Entry): Promise<void> {
    const settled = entry.tail.then(async () => {
      const wanted = entry.holders.size > 0;
      if (entry.frozen === wanted) return;
      entry.frozen = null;
      const launcher = await this.#launcher();
      await (wanted ? launcher.freeze(id) : launcher.thaw(id));
      entry.frozen = wanted;
    });
    entry.tail = settled.catch(() => undefined);
    return settled;
  }
}
