/** `dsec job …`: groups of sandboxes with an owner, one file per command. @paper §6.2 §6.3 */
import type { Command as Cli } from 'commander';
import { registerCreate } from './job/create.ts';
import { registerExport } from './job/export.ts';
import { registerExtend } from './job/extend.ts';
import { GOALS, registerGoal } from './job/goals.ts';
import { registerList } from './job/list.ts';
import { registerMembers } from './job/members.ts';
import { registerRollouts } from './job/rollouts.ts';
import { registerShow } from './job/show.ts';

export const registerJob = (program: Cli): void => {
  const job = program.command('job').description('groups of sandboxes under one owner, one deadline and one set of defaults');
  registerCreate(job);
  registerList(job);
  registerShow(job);
  registerMembers(job);
  for (const verb of GOALS) registerGoal(job, verb);
  registerExtend(job);
  registerRollouts(job);
  registerExport(job);
};
