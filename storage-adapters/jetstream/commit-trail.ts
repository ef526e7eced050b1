/** Stretches of a project's commits, as stored: tombstones and what nobody can read are left out. */
import type { CommitTrail, TrailCommit } from '#actors/ports/commit-trail.ts';
import { commitFilter, eventsStream } from '#bus/subjects.ts';
import { readEntry } from '../commit-message.ts';
import type { BusContext } from './context.ts';
import { readOnce } from './one-shot.ts';

export const commitTrailOf = (context: BusContext): CommitTrail => ({
  read: async ({ shard, project, from, limit }) => {
    const commits: TrailCommit[] = [];
    let more = false;
    const begin =
      'sequence' in from
        ? ({ deliver_policy: 'by_start_sequence', opt_start_seq: Math.max(1, from.sequence) } as const)
        : ({ deliver_policy: 'by_start_time', opt_start_time: new Date(from.storedAtMs).toISOString() } as const);
    await readOnce(context, eventsStream(shard), { ...begin, filter_subject: commitFilter({ shard, project }) }, (message) => {
      more = commits.length === limit;
      const entry = more ? null : readEntry(message);
      if (entry?.kind === 'commit') commits.push({ ...entry.stored, storedAtMs: message.storedAtMs });
      return !more;
    });
    return { commits, more };
  },
});
