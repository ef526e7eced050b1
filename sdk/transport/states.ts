/** Newest states of many sandboxes, in pages that shrink when large specs make an answer too large for one message. */
import type { SandboxView } from '#bus/api/schema.ts';
import { DsecError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { SDK_LIMITS } from '../limits.ts';
import type { Session } from '../session.ts';
import type { CallOptions } from './api-client.ts';

/** In the order of `ids`; null where the project has no such sandbox. */
export async function* newestStates(session: Session, ids: readonly SandboxId[], options: CallOptions = {}): AsyncGenerator<SandboxView | null> {
  let size: number = SDK_LIMITS.statesPerGet;
  for (let at = 0; at < ids.length; ) {
    try {
      const page = ids.slice(at, at + size);
      const { sandboxes } = await session.api.call('get', { ids: page }, options);
      yield* sandboxes;
      at += page.length;
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || thrown.code !== 'PAYLOAD_TOO_LARGE' || size === 1) throw thrown;
      size = Math.max(1, Math.floor(size / 4));
    }
  }
}
