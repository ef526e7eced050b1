/**
 * Whether a paused sandbox may go on now. @paper §6.3
 *
 * A pause keeps every reservation (INV-CAP holds whatever rests), so a resume needs no admission. What it needs is real memory for
 * what was given back; a node that has filled it with others says so, typed, and the sandbox stays as it is.
 */
import { type WireError, wireError } from '#bus/errors.ts';
import type { EdgeName, SandboxId } from '#bus/ids.ts';

/** `floorMiB` stays free for others. */
export type ResumeFacts = { readonly edge: EdgeName; readonly availableMemoryMiB: number; readonly floorMiB: number };

export const refusalOfResume = (
  id: SandboxId,
  givenBackMiB: number | null,
  { edge, availableMemoryMiB: available, floorMiB }: ResumeFacts,
): WireError | null => {
  const needed = (givenBackMiB ?? 0) + floorMiB;
  if (available >= needed) return null;
  const message = `node ${edge} has ${available} MiB of memory left, and sandbox ${id} needs ${needed} to go on; it stays paused and whole, stop others or try again later`;
  return wireError('NODE_FULL', message, { details: { dimension: 'availableMemory', free: available, needed } });
};
