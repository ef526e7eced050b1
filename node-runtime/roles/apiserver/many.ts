/** One command to each sandbox of a page, all at once; a refusal of one keeps nothing from the others. */
import type { ApiParsed, ApiResponse, Decision } from '#bus/api/schema.ts';
import type { ManyItem, ManyVerb } from '#bus/api/many.ts';
import { toWireError } from '#bus/errors.ts';
import type { ClientKey, SandboxId } from '#bus/ids.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import type { SandboxStatus } from '#bus/sandbox/state.ts';
import type { SandboxProjection } from '#adapters/sqlite/mod.ts';
import type { Caller } from './apiserver.ts';
import { APISERVER_LIMITS } from './limits.ts';

type Step = { readonly command: SandboxBusCommand; readonly from: readonly SandboxStatus[] };
const STEPS: Record<ManyVerb, Step> = {
  pauseMany: { command: { type: 'PauseSandbox' }, from: ['running'] },
  resumeMany: { command: { type: 'ResumeSandbox' }, from: ['paused', 'pausing'] },
};

export type ManyOptions = {
  readonly projection: Pick<SandboxProjection, 'list' | 'waitFor'>;
  readonly send: (id: SandboxId, command: SandboxBusCommand, key: ClientKey | undefined, caller: Caller) => Promise<Decision>;
};

export const toMany = async (o: ManyOptions, verb: ManyVerb, request: ApiParsed<ManyVerb>, caller: Caller): Promise<ApiResponse<ManyVerb>> => {
  const { command, from } = STEPS[verb];
  const { ids, next } = await pageOf(o, request, from, caller);
  const items = await Promise.all(
    ids.map(async (id): Promise<ManyItem> => {
      try {
        return { id, decision: await o.send(id, command, request.key, caller) };
      } catch (thrown) {
        return { id, error: toWireError(thrown) };
      }
    }),
  );
  return { items, next };
};

const pageOf = async (o: ManyOptions, { ids, labels, after, limit, atLeast }: ApiParsed<ManyVerb>, from: readonly SandboxStatus[], { project }: Caller) => {
  if (ids) return { ids: [...new Set(ids)], next: null };
  await o.projection.waitFor(atLeast, APISERVER_LIMITS.atLeastWaitMs);
  const page = o.projection.list({ project, labels: labels ?? {}, statuses: [...from], changedAfter: {}, after, limit });
  return { ids: page.sandboxes.map(({ state }) => state.id), next: page.next };
};
