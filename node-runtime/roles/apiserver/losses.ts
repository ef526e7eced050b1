/** Counts the loss of Edges into what clients are told of sandboxes. The rule itself is `bus-schemas/edge/loss.ts`. */
import type { ApiParsed, ApiResponse, Decision, SandboxView } from '#bus/api/schema.ts';
import { type Loss, sandboxLostError, withLoss } from '#bus/edge/loss.ts';
import { DsecError } from '#bus/errors.ts';
import { type EdgeName, parseSandboxId, type SandboxId } from '#bus/ids.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import { ENDED_STATUSES, SANDBOX_STATUSES } from '#bus/sandbox/state.ts';

/** The Edges as this process knows them. */
export type Losses = { get(edge: EdgeName): (Loss & { readonly status: string }) | undefined; all(): readonly Loss[] };

export const viewWithLoss = (view: SandboxView, losses: Losses): SandboxView => {
  const state = withLoss(view.state, losses.get(view.state.edge));
  return state === view.state ? view : { ...view, state, lost: true };
};

const NOT_ENDED = SANDBOX_STATUSES.filter((status) => !ENDED_STATUSES.has(status));

/** A lost sandbox is stored as what it was: a list of ended ones has to look among the others too while there are losses. */
export const statusesToAsk = (statuses: ApiParsed<'list'>['statuses'], losses: Losses): ApiParsed<'list'>['statuses'] => {
  const asksForEnded = statuses.some((status) => ENDED_STATUSES.has(status));
  const mayBeLost = losses.all().some(({ lostGeneration }) => lostGeneration > 0);
  return asksForEnded && mayBeLost ? [...new Set([...statuses, ...NOT_ENDED])] : statuses;
};

export const pageWithLosses = (page: ApiResponse<'list'>, statuses: ApiParsed<'list'>['statuses'], losses: Losses): ApiResponse<'list'> => {
  const views = page.sandboxes.map((view) => viewWithLoss(view, losses));
  return { ...page, sandboxes: statuses.length === 0 ? views : views.filter(({ state }) => statuses.includes(state.status)) };
};

/**
 * What a life-cycle command is told without asking an Edge that was declared lost: null when it has to be asked after all.
 * Stop is a goal, and reached. Everything else would wait for a node that has nothing of the sandbox left.
 */
export const answerOfLost = async (
  id: SandboxId,
  { type }: SandboxBusCommand,
  losses: Losses,
  newest: () => Promise<SandboxView | null>,
): Promise<Decision | null> => {
  const edge = losses.get(parseSandboxId(id).edge);
  if (edge?.status !== 'lost') return null;
  const view = await newest();
  if (!view?.lost) return null;
  if (type === 'StopSandbox') return { decision: 'ignored', reason: `lost with node ${edge.name}`, version: view.version };
  if (type === 'DeleteSandbox') return null; // stored: the node forgets it when it is back
  throw new DsecError(sandboxLostError(id, edge));
};
