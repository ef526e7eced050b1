/** The client half of the `dsec` program. The program adds the commands of servers and nodes. */
import type { Command } from 'commander';
import { registerAdmin } from './commands/admin.ts';
import { registerAttach, registerKill, registerWait } from './commands/attach.ts';
import { registerCat, registerCopy, registerListFiles } from './commands/copy.ts';
import { registerExec, registerLogs, registerPs } from './commands/exec.ts';
import { registerJob, registerRollout } from './commands/job.ts';
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

/** Adds `run exec attach wait kill ls get logs ps cp cat ls-files stop delete pause resume snapshot fork recover extend job rollout events watch top project principal credential whoami audit` to `program`. */
export const registerClientCommands = (program: Command): void => {
  program.enablePositionalOptions(); // so that the options of a command that runs in a sandbox are left alone
  registerRun(program);
  registerExec(program);
  registerAttach(program);
  registerWait(program);
  registerKill(program);
  registerLs(program);
  registerGet(program);
  registerLogs(program);
  registerPs(program);
  registerCopy(program);
  registerCat(program);
  registerListFiles(program);
  registerLifecycle(program);
  registerRest(program);
  registerSnapshot(program);
  registerFork(program);
  registerRecover(program);
  registerExtend(program);
  registerJob(program);
  registerRollout(program);
  registerEvents(program);
  registerWatch(program);
  registerTop(program);
  registerAdmin(program);
};
