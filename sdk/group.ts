/** A group of equal sandboxes made under one key: what became of each, and commands to all that run. @paper §2.1 §4 */
import { DsecError } from '#bus/errors.ts';
import type { ClientKey } from '#bus/ids.ts';
import { forEachLimited } from './concurrency.ts';
import { SDK_LIMITS } from './limits.ts';
import type { Sandbox } from './sandbox.ts';
import type { SettleOptions } from './transition.ts';

/** Position = `index`. Exactly one of `sandbox` and `error` is there. */
export type GroupItem =
  | { readonly index: number; readonly sandbox: Sandbox; readonly error?: undefined }
  | { readonly index: number; readonly sandbox?: undefined; readonly error: DsecError };
export type GroupProgress = { readonly total: number; readonly running: number; readonly failed: number };

export class Group {
  /** Asking again with this key and the same options gives the same sandboxes. */
  readonly key: ClientKey;
  readonly items: readonly GroupItem[];

  constructor(key: ClientKey, items: readonly GroupItem[]) {
    this.key = key;
    this.items = items;
  }

  get sandboxes(): readonly Sandbox[] {
    return this.items.flatMap((item) => (item.sandbox ? [item.sandbox] : []));
  }
  get failures(): readonly { readonly index: number; readonly error: DsecError }[] {
    return this.items.flatMap((item) => (item.error ? [{ index: item.index, error: item.error }] : []));
  }

  /** Throws the first failure, for callers to whom a part of a group is of no use. */
  orThrow(): this {
    const first = this.failures[0];
    if (first) throw first.error;
    return this;
  }

  /** Stops every sandbox that came to run; one that is already gone is fine. */
  async stopAll(options: SettleOptions = {}): Promise<void> {
    await forEachLimited(this.sandboxes, SDK_LIMITS.groupCommandsInFlight, async (sandbox) => {
      await sandbox.stop(options).catch(unlessGone);
    });
  }

  async deleteAll(options: SettleOptions = {}): Promise<void> {
    await forEachLimited(this.sandboxes, SDK_LIMITS.groupCommandsInFlight, async (sandbox) => {
      await sandbox.delete(options).catch(unlessGone);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await forEachLimited(this.sandboxes, SDK_LIMITS.groupCommandsInFlight, (sandbox) => sandbox[Symbol.asyncDispose]());
  }
}

const unlessGone = (thrown: unknown): void => {
  if (!(thrown instanceof DsecError) || !['SANDBOX_NOT_FOUND', 'SANDBOX_ENDED'].includes(thrown.code)) throw thrown;
};
