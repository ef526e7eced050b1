/**
 * What an Edge says to packed creates: refused as a whole, one by one, or taken to the sandbox's actor.
 *
 * Decides from facts that its shell reads (time, floors, layers). Does not decide whether the sums fit: that is `admission.ts`.
 * @paper §3.3
 */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { type WireError, wireError } from '#bus/errors.ts';
import { bodyHashOf, type EdgeName, messageIdOf, type RequestId } from '#bus/ids.ts';
import { KEY_LIMITS } from '#bus/limits.ts';
import type { ReportBatch } from '#bus/request/schema.ts';
import type { LaunchSandboxes, SandboxCommand } from '#bus/sandbox/commands.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { CommandResult } from '../kernel/host.ts';
import { ADMISSION_LIMITS, COMMAND_LIMITS } from './limits.ts';

export type LaunchItem = LaunchSandboxes['items'][number];

/** What the node is like at the moment of the decision. */
export type NodeFacts = {
  readonly edge: EdgeName;
  readonly now: number;
  /** False while it is draining or fenced. */
  readonly accepting: boolean;
  /** The message was sent to a generation of this node that was lost since: its creates have gone to other nodes. */
  readonly sentToLost: boolean;
  readonly availableMemoryMiB: number;
  readonly freeDiskMiB: number;
  /** What the node is and has, as `spec.require` asks for it. */
  readonly labels: Readonly<Record<string, string>>;
  /** A layer of the spec that this node cannot get. */
  readonly missingLayer: string | null;
};

/** What keeps every item of the batch from this node; null when each is for admission to decide. */
export const refusalOfBatch = (deadlineAt: number | undefined, { backend, require: required }: LaunchSandboxes['spec'], node: NodeFacts): WireError | null => {
  const { edge, availableMemoryMiB: memory, freeDiskMiB: disk, missingLayer: missing } = node;
  const { memoryFloorMiB, diskFloorMiB } = ADMISSION_LIMITS;
  if (deadlineAt !== undefined && deadlineAt < node.now)
    return wireError('DEADLINE_EXCEEDED', `the create reached node ${edge} after its deadline; create again with a longer timeout`, {
      outcome: 'not_applied',
    });
  if (node.sentToLost) return lostOnTheWay(edge);
  if (!node.accepting) return wireError('EDGE_FENCED', `node ${edge} takes no new sandboxes now (draining, or its lease is not renewed)`);
  if (backend !== 'container') return wireError('NOT_SUPPORTED', `backend ${backend} is not available on node ${edge}; use container`);
  const lacking = Object.keys(required).find((name) => node.labels[name] !== required[name]);
  if (lacking !== undefined)
    return wireError('NODE_FULL', `node ${edge} does not have ${lacking}=${required[lacking]}, which the sandbox requires; another node may`, {
      details: { dimension: 'labels', lacking },
    });
  if (memory < memoryFloorMiB)
    return full(`node ${edge} has ${memory} MiB of memory left and takes no sandboxes below ${memoryFloorMiB}; stop some`, 'availableMemory', memory);
  if (disk < diskFloorMiB) return full(`node ${edge} has ${disk} MiB of disk left and takes no sandboxes below ${diskFloorMiB}; free some`, 'disk', disk);
  return missing ? wireError('LAYER_NOT_FOUND', `layer ${missing} is not in the store that node ${edge} reads; build or import it, see dsec image ls`) : null;
};

/** What a create is told that was assigned to a node which was lost before it admitted it: by that node, or in its place. */
export const lostOnTheWay = (edge: EdgeName): WireError =>
  wireError('EDGE_FENCED', `node ${edge} was declared lost before it took this create; another node gets it`);

const full = (message: string, dimension: string, free: number): WireError =>
  wireError('NODE_FULL', `${message}, or try again later`, { details: { dimension, free } });

/** The first command of an admitted sandbox. */
export const createOf = (
  { requestId, spec, heldUntil, forkedFrom }: LaunchSandboxes,
  { index, attempt }: LaunchItem,
  slot: number,
  generation: number,
  layersLocal = true,
): SandboxCommand => ({
  type: 'CreateSandbox',
  requestId,
  index,
  attempt,
  spec,
  slot,
  generation,
  layersLocal,
  heldUntil,
  ...(forkedFrom ? { forkedFrom } : {}),
});

/** Command id of an item's create: the same for every delivery of the batch that carries it. */
export const createIdOf = (envelope: CommandEnvelope, { index, attempt }: LaunchItem): string => `${envelope.id}:${index}:${attempt}`;

/** News of items of a packed create for their request. */
export type BatchNews = Pick<ReportBatch, 'refused' | 'held' | 'running' | 'failed'>;
export const NO_NEWS: BatchNews = { refused: [], held: [], running: [], failed: [] };

/** What goes on the request's report lane. The id names what is said, so that a repeated report counts once. */
export const batchReport = (envelope: CommandEnvelope, requestId: RequestId, news: BatchNews, at: TimestampMs): CommandEnvelope => {
  const data: ReportBatch = { type: 'ReportBatch', project: envelope.project, requestId, ...news };
  return { ...envelope, id: messageIdOf(envelope.project, requestId, 'batch', bodyHashOf(data)), at, causationId: envelope.id, replyTo: undefined, data };
};

/**
 * A refusal is for ever (INV-REFUSED): before it is told, a tombstone takes the place of the sandbox's first commit. Otherwise the
 * same batch, come again after a crash or for the sake of another item, could create here what another node was given meanwhile.
 */
export const tombstoneOfRefused = { expectedSequence: 0, ttlMs: KEY_LIMITS.tombstoneTtlMs } as const;

/** A create that meets its own tombstone: this node refused it before, and perhaps could not say so any more. */
export const refusedBefore = (edge: EdgeName, result: CommandResult): WireError | null =>
  !result.ok && result.error.code === 'SANDBOX_ENDED'
    ? wireError('NODE_FULL', `node ${edge} has refused this sandbox before; another node gets it`, { details: { dimension: 'refused' } })
    : null;

/** Null when the answer is the last word; otherwise why the command has to come again. */
export const unsettledBy = (result: CommandResult): WireError | null => (result.ok || result.error.retry === 'never' ? null : result.error);

/** Goals: no order between commands can make them wrong, so they are never superseded by a newer command. */
export const isGoal = (type: SandboxCommand['type']): boolean => type === 'StopSandbox' || type === 'DeleteSandbox';

/** A stop or delete may overtake the create on its way; it is given back a few times before it is told that there is nothing. */
export const overtookItsCreate = (type: SandboxCommand['type'], result: CommandResult, attempt: number): boolean =>
  !result.ok && result.error.code === 'SANDBOX_NOT_FOUND' && isGoal(type) && attempt <= COMMAND_LIMITS.earlyStopRetries;
