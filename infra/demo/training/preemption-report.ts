/** The preemption demo's table, and the check of every claim in it. */
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import Table from 'cli-table3';
import type { DsecClient } from '#sdk/mod.ts';
import { countLeftovers, type Leftovers } from '../leftovers.ts';
import type { Disturbed } from './disturb.ts';

export type EpisodeReport = {
  readonly key: string;
  readonly outcome: string | null;
  readonly reward: number | null;
  readonly turns: number;
  readonly steps: number;
  /** Steps as the counter inside the sandbox has them, in the order of their numbers. */
  readonly ran: readonly number[];
  readonly isComplete: boolean;
};

/** Writes every trajectory, one event per line, and reads from them what the report tells. */
export const exportTrajectories = async (dsec: DsecClient, jobId: string, file: string): Promise<EpisodeReport[]> => {
  const out = createWriteStream(file);
  const reports: EpisodeReport[] = [];
  for await (const { id } of dsec.jobs.rollouts(jobId)) {
    const { state } = await dsec.jobs.rollout(id);
    let answered = 0;
    let isEnded = false;
    for await (const record of dsec.jobs.trajectory(id)) {
      out.write(`${JSON.stringify({ rolloutId: id, ...record })}\n`);
      if (record.type === 'TurnAnswered') answered += 1;
      isEnded ||= record.type === 'RolloutEnded';
    }
    const ran = (state.result as { ran?: number[] } | null)?.ran ?? [];
    const { key, outcome, reward, turns, steps } = state;
    reports.push({ key, outcome, reward, turns, steps, ran, isComplete: isEnded && answered === turns });
  }
  out.end();
  await finished(out);
  return reports;
};

const seconds = (s = Number.NaN): string => `${s.toFixed(2)} s`;
const ranOnce = ({ ran, steps }: EpisodeReport): boolean => ran.length === steps && ran.every((step, i) => step === i + 1);

export const printPreemption = (episodes: readonly EpisodeReport[], disturbed: Disturbed, left: Leftovers, file: string): void => {
  const table = new Table({
    head: ['episodes', 'complete', 'repaired', 'turns', 'steps asked', 'steps run', 'run twice or never'],
    style: { head: [], border: [] },
  });
  const sum = (of: (e: EpisodeReport) => number): number => episodes.reduce((n, e) => n + of(e), 0);
  table.push([
    episodes.length,
    episodes.filter((e) => e.isComplete).length,
    episodes.filter((e) => (e.reward ?? 0) > 0).length,
    sum((e) => e.turns),
    sum((e) => e.steps),
    sum((e) => e.ran.length),
    episodes.filter((e) => !ranOnce(e)).length,
  ]);
  process.stdout.write(`\n${table.toString()}\n`);
  const { paused, firstTurnSeconds, trainerKills, edgeKills } = disturbed;
  const lines = [
    `killed with SIGKILL       the trainer ${trainerKills} times, the Edge ${edgeKills} time`,
    `a trainer’s first turn    after ${firstTurnSeconds.slice(1).map(seconds).join(', ')} when it came back; ${seconds(firstTurnSeconds[0])} at the very first, with all sandboxes to be made`,
    paused
      ? `paused as a whole         ${paused.members} sandboxes in ${paused.seconds.toFixed(1)} s; resident memory ${paused.before.residentMiB} → ${paused.during.residentMiB} MiB, available on the machine ${paused.before.availableMiB} → ${paused.during.availableMiB} MiB`
      : 'paused as a whole         not at all',
    `trajectories              ${file}`,
    `left on this machine      ${countLeftovers(left) === 0 ? 'nothing (processes, mounts, cgroups, network namespaces, files)' : countLeftovers(left)}`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
};

/** Everything that is not as it must be. */
export const verifyPreemption = (episodes: readonly EpisodeReport[], disturbed: Disturbed, left: Leftovers, count: number): string[] => {
  const problems = [...disturbed.problems];
  if (episodes.length !== count) problems.push(`${episodes.length} of ${count} episodes are known`);
  for (const e of episodes) {
    if (e.outcome !== 'finished' || !e.isComplete)
      problems.push(`${e.key}: ended as ${e.outcome}, its trajectory is ${e.isComplete ? 'complete' : 'not complete'}`);
    else if (!ranOnce(e)) problems.push(`${e.key}: ${e.steps} steps, the counter inside says ${e.ran.join(' ')}`);
  }
  const { paused } = disturbed;
  if (!paused || paused.during.residentMiB > paused.before.residentMiB / 2) problems.push('pausing gave less than half of the memory back');
  if (countLeftovers(left) > 0) problems.push(`left behind: ${JSON.stringify(left)}`);
  return problems;
};
