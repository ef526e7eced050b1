/** The client half of the `dsec` program. The program adds the commands of servers and nodes. */
import type { Command } from 'commander';
import { registerAdmin } from './commands/admin.ts';
import { registerAudit } from './commands/audit.ts';
import { registerAttach, registerKill, registerWait } from './commands/attach.ts';
import { registerCat, registerCopy, registerListFiles } from './commands/copy.ts';
import { registerExec, registerLogs, registerPs } from './commands/exec.ts';
import { registerJob } from './commands/job.ts';
import { registerRollout } from './commands/rollout.ts';
import { registerLifecycle } from './commands/lifecycle.ts';
import { registerExtend } from './commands/extend.ts';
import { registerEvents, registerGet, registerLs } from './commands/look.ts';
import { registerRest } from './commands/rest.ts';
import { registerFork } from './commands/fork.ts';
import { registerRecover } from './commands/recover.ts';
import { registerRun } from './commands/run.ts';
import { registerSnapshot } from './commands/snapshot.ts';
import { registerTop } from './commands/top.ts';
import { registerWatch } from './commands/watch.ts';

/** Adds the client's commands to `program`, in the groups and the order in which its help shows them. */
export const registerClientCommands = (program: Command): void => {
  program.enablePositionalOptions(); // so that the options of a command that runs in a sandbox are left alone
  program.commandsGroup('Sandboxes:');
  registerRun(program);
  registerLs(program);
  registerGet(program);
  registerWatch(program);
  registerTop(program);
  registerEvents(program);
  registerLifecycle(program);
  registerRest(program);
  registerSnapshot(program);
  registerFork(program);
  registerRecover(program);
  registerExtend(program);
  program.commandsGroup('Commands in them:');
  registerExec(program);
  registerAttach(program);
  registerWait(program);
  registerKill(program);
  registerLogs(program);
  registerPs(program);
  program.commandsGroup('Files in them:');
  registerCopy(program);
  registerCat(program);
  registerListFiles(program);
  program.commandsGroup('Jobs:');
  registerJob(program);
  registerRollout(program);
  program.commandsGroup('Projects and rights:');
  registerAdmin(program);
  registerAudit(program);
};
