/**
 * The verb that forks: sandboxes that begin with the files of a live one as they are now. @paper §6.1
 *
 * One call under one client key. The origin stands still once, for the capture that all its forks share; `pending` says that this goes on,
 * and the same call waits on. `accepted`: the forks are ordered, durably, and what becomes of each is in the request actor, as of a
 * create. Same key and body: same answer, also when the origin has gone on or ended.
 */
import { z } from 'zod';
import { ClientKey, RequestId, SandboxId } from '../ids.ts';
import { WIRE_LIMITS } from '../limits.ts';
import { SandboxRequest } from '../sandbox/spec.ts';
import { DurationMs } from '../units.ts';

const asked = SandboxRequest.shape;
/** What differs from the origin; the rest is taken over. Layers named here come above the origin's files. */
export const ForkChanges = z.strictObject({
  workspaces: asked.workspaces,
  toolkits: asked.toolkits,
  limits: asked.limits,
  lives: asked.lives,
  networkRules: asked.networkRules.removeDefault().optional(),
  initUser: asked.initUser.removeDefault().optional(),
  env: asked.env.removeDefault().optional(),
  labels: asked.labels.removeDefault().optional(),
  require: asked.require.removeDefault().optional(),
  isolation: asked.isolation.removeDefault().optional(),
  recordCommands: asked.recordCommands.removeDefault().optional(),
  job: asked.job,
  hostname: asked.hostname,
});
export type ForkChanges = z.infer<typeof ForkChanges>;

export const FORK_API = {
  fork: {
    request: z.strictObject({
      v: z.literal(1),
      id: SandboxId,
      key: ClientKey,
      count: z.number().int().min(1).max(WIRE_LIMITS.maxCreatesPerMessage).default(1),
      changes: ForkChanges.prefault({}),
      timeoutMs: DurationMs.min(1_000)
        .max(24 * 3_600_000)
        .default(120_000 as DurationMs),
    }),
    /** `requestId` and `bodyHash` as of a create. */
    response: z.object({ decision: z.enum(['accepted', 'pending']), requestId: RequestId, bodyHash: z.string() }),
  },
} as const;
