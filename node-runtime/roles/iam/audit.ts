/**
 * Who did what in a project: every commit of its actors that the log holds, oldest first, page by page. @paper §3.2
 *
 * Shards are read side by side and put in the order of the bus's clock; a page ends where one of them may have something older to
 * come. A page reads a bounded number of commits, however few of them are asked for.
 */
import type { ApiRequest, ApiResponse } from '#bus/api/schema.ts';
import type { AuditRecord } from '#bus/api/iam.ts';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName, Shard } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { CommitTrail, TrailCommit, TrailStart } from '#actors/ports/commit-trail.ts';
import { IAM_LIMITS } from './limits.ts';

type Question = Omit<ApiRequest<'audit'>, 'v'>;

export const auditPage = async (trail: CommitTrail, shards: readonly Shard[], project: ProjectName, asked: Question): Promise<ApiResponse<'audit'>> => {
  const starts = asked.after === undefined ? new Map<Shard, TrailStart>() : readCursor(asked.after);
  const startOf = (shard: Shard): TrailStart => starts.get(shard) ?? { storedAtMs: asked.since ?? 0 };
  const limit = Math.max(IAM_LIMITS.auditShardMin, Math.ceil(IAM_LIMITS.auditPageCommits / shards.length));
  const read = await Promise.all(shards.map(async (shard) => ({ shard, ...(await trail.read({ shard, project, from: startOf(shard), limit })) })));

  const horizon = Math.min(...read.flatMap(({ commits, more }) => (more ? [commits.at(-1)?.storedAtMs ?? 0] : [])));
  const isDue = ({ storedAtMs }: TrailCommit): boolean => storedAtMs <= horizon && storedAtMs <= (asked.until ?? Number.POSITIVE_INFINITY);
  const due = read
    .flatMap(({ commits }) => commits)
    .filter(isDue)
    .sort((a, b) => a.storedAtMs - b.storedAtMs || a.sequence - b.sequence);
  const positions = new Map(shards.map((shard) => [shard, startOf(shard)]));
  const records: AuditRecord[] = [];
  let cut = false;
  for (const one of due) {
    if (records.length === asked.limit) {
      cut = true;
      break;
    }
    positions.set(one.address.shard, { sequence: one.sequence + 1 });
    if (isAskedFor(one, asked)) records.push(recordOf(one));
  }
  const isBehind = read.some(({ commits, more }) => {
    const next = commits.find(({ storedAtMs }) => storedAtMs > horizon)?.storedAtMs ?? (more ? horizon : Number.POSITIVE_INFINITY);
    return next <= (asked.until ?? Number.MAX_VALUE);
  });
  return { records, next: cursorOf(positions), more: cut || isBehind };
};

const isAskedFor = ({ address, commit }: TrailCommit, { principal, kind }: Question): boolean =>
  (principal === undefined || commit.principal === principal) && (kind === undefined || address.kind === kind);

const recordOf = ({ address, commit, storedAtMs }: TrailCommit): AuditRecord => ({
  at: commit.at,
  storedAt: Math.floor(storedAtMs) as TimestampMs,
  principal: commit.principal,
  kind: address.kind,
  actorId: address.id,
  version: commit.version,
  commandId: commit.commandId,
  correlationId: commit.correlationId,
  // A packed decision names one event for each of its items.
  events: [...new Set(commit.events.map(({ type }) => type))],
});

/** `<shard>:<sequence>`, or `<shard>@<milliseconds>` where nothing was found yet; joined by commas. */
const cursorOf = (positions: ReadonlyMap<Shard, TrailStart>): string =>
  [...positions].map(([shard, from]) => ('sequence' in from ? `${shard}:${from.sequence}` : `${shard}@${from.storedAtMs}`)).join(',');

const readCursor = (text: string): Map<Shard, TrailStart> => {
  const positions = new Map<Shard, TrailStart>();
  for (const part of text.split(',')) {
    const [, shard, how, amount] = /^([0-9a-z])([:@])(\d{1,16})$/.exec(part) ?? [];
    if (shard === undefined) throw DsecError.of('INVALID_ARGUMENT', `after: ${part.slice(0, 40)} is not where an audit was left; take it from a page's next`);
    positions.set(shard as Shard, how === ':' ? { sequence: Number(amount) } : { storedAtMs: Number(amount) });
  }
  return positions;
};
