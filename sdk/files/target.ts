/** What the calls on files share: where, as whom, until when. */
import { randomKey } from '../transport/clock.ts';
import type { ClientKey, SandboxId } from '#bus/ids.ts';
import type { OpClient } from '../transport/op-client.ts';

export type FileCallOptions = {
  /** Who reads or writes, as in `exec`; the sandbox's `initUser` when absent. */
  readonly user?: string | undefined;
  /** Ends the call with CANCELLED. */
  readonly signal?: AbortSignal | undefined;
};

export type FileTarget = { readonly ops: OpClient; readonly sandboxId: SandboxId };

export const newKey = (): ClientKey => randomKey() as ClientKey;
/** Without the fields that are undefined, which a strict schema would refuse. */
export const given = <T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [K in keyof T]: Exclude<T[K], undefined> };
