/** The client half of the `dsec` program. The program adds the commands of servers and nodes. */
import type { Command } from 'commander';
import { registerExec, registerLogs, registerPs } from './commands/exec.ts';
import { registerLifecycle } from './commands/lifecycle.ts';
import { registerEvents, registerGet, registerLs } from './commands/look.ts';
import { registerRun } from './commands/run.ts';

/** Adds `run exec ls get logs ps stop delete pause resume events` to `program`. */
export const registerClientCommands = (program: Command): void => {
  program.enablePositionalOptions(); // so that the options of a command that runs in a sandbox are left alone
  registerRun(program);
  registerExec(program);
  registerLs(program);
  registerGet(program);
  registerLogs(program);
  registerPs(program);
  registerLifecycle(program);
  registerEvents(program);
};
