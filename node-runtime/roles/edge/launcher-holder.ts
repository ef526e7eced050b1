/** Keeps one launcher at hand: connects to a living one, or starts it; makes a new one when it dies. */
import { DsecError } from '#bus/errors.ts';
import { ensureLauncher, type LauncherOptions } from '../../launcher/process.ts';
import type { LauncherClient } from '../../launcher/client.ts';
import type { Log } from '../../log/log.ts';

export class LauncherHolder {
  readonly #options: LauncherOptions;
  readonly #log: Log;
  readonly #onReplaced: (client: LauncherClient) => Promise<void>;
  #current: Promise<LauncherClient> | undefined;
  #client: LauncherClient | undefined;
  #closed = false;

  /** `onReplaced` runs before anybody gets a client of a new launcher: it mounts again what live sandboxes stand on. */
  constructor(options: LauncherOptions, log: Log, onReplaced: (client: LauncherClient) => Promise<void>) {
    this.#options = options;
    this.#log = log;
    this.#onReplaced = onReplaced;
  }

  get(): Promise<LauncherClient> {
    if (this.#closed) return Promise.reject(DsecError.of('EDGE_UNAVAILABLE', 'this Edge is shutting down'));
    this.#current ??= this.#start();
    return this.#current;
  }

  /** Requests that it has not answered yet; null while there is no launcher. */
  waiting(): number | null {
    return this.#client?.waiting ?? null;
  }

  async #start(): Promise<LauncherClient> {
    try {
      const client = await ensureLauncher(this.#options);
      client.onClose(() => {
        this.#current = undefined;
        this.#client = undefined;
        if (!this.#closed) this.#log.warn('launcher.lost', {});
      });
      await this.#onReplaced(client);
      this.#client = client.open ? client : undefined;
      return client;
    } catch (thrown) {
      this.#current = undefined;
      throw thrown;
    }
  }

  /** Ends the connection and, when `quit`, the launcher itself. */
  async close(quit: boolean): Promise<void> {
    const current = this.#current;
    this.#closed = true;
    const client = await current?.catch(() => undefined);
    if (quit) await client?.quit().catch(() => {});
    client?.close();
  }
}
