/**
 * What a request's state calls for: every standing assignment must reach its Edge. Whether it did, the state cannot know,
 * so forwarding is repeated after a redelivery and Edges ignore what they already have. A request actor is loaded only by a
 * redelivery or a refusal, so a restart does not repeat every request ever made.
 */
import type { EdgeName } from '#bus/ids.ts';
import type { Assignment, RequestState } from '#bus/request/schema.ts';
import type { Deadline } from '../kernel/definition.ts';

/** One message to one Edge. The key lists the indices, so that a new item for the same Edge is new work. */
export type RequestEffect = {
  readonly key: string;
  readonly type: 'ensureForwarded';
  readonly edge: EdgeName;
  readonly attempt: number;
  readonly assignments: readonly Assignment[];
};

export const pendingRequestEffects = (state: RequestState): readonly RequestEffect[] => {
  const groups = new Map<string, Assignment[]>();
  for (const [index, { edge, sandboxId, attempt, error }] of state.items.entries()) {
    if (!edge || !sandboxId || error) continue;
    const name = `${edge}:${attempt}`;
    const group = groups.get(name) ?? [];
    group.push({ index, attempt, edge, sandboxId });
    groups.set(name, group);
  }
  return [...groups].flatMap(([name, assignments]) => {
    const [first] = assignments;
    return first ? [{ key: `forward:${name}:${ranges(assignments)}`, type: 'ensureForwarded', edge: first.edge, attempt: first.attempt, assignments }] : [];
  });
};

/** `0-3,7`: blocks of neighbouring items make short keys. Indices come in rising order. */
const ranges = (assignments: readonly Assignment[]): string => {
  const parts: [number, number][] = [];
  for (const { index } of assignments) {
    const last = parts.at(-1);
    if (last && last[1] + 1 === index) last[1] = index;
    else parts.push([index, index]);
  }
  return parts.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(',');
};

/** After it the key answers KEY_EXPIRED, and the record may be forgotten once the retention is over too. */
export const requestDeadlines = (state: RequestState): readonly Deadline[] => [{ kind: 'key', at: state.keyExpiresAt, version: 0 }];
