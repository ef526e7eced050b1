/** `dsec apiserver`, `dsec placement`, `dsec watcher`, `dsec edge`: one role as one process, from one configuration file. */
import type { Command } from 'commander';
import { loadConfig } from '../../config.ts';
import type { Lent } from '../jobs/role.ts';
import { serve } from '../serve.ts';
import { SERVED_ROLES, type ServedRole } from '../supervision.ts';

const DESCRIPTIONS: Readonly<Record<ServedRole, string>> = {
  apiserver: 'answer clients; any number of instances share the work',
  placement: 'choose nodes for creates; any number of instances share the work',
  watcher: 'watch nodes, and declare lost those that are gone; any number of instances may run',
  iam: 'keep projects, principals, policies and quotas; any number of instances may run',
  jobs: 'lead jobs and rollouts; any number of instances may run',
  edge: 'run sandboxes on this node; one per node',
};

export const registerRoleCommands = (program: Command, lent: Lent): void => {
  for (const role of SERVED_ROLES)
    program
      .command(role)
      .description(DESCRIPTIONS[role])
      .requiredOption('--config <file>', 'configuration file (JSON)')
      .option('--print-config', 'print the configuration that results, and end')
      .addHelpText('after', `\nExamples:\n  dsec ${role} --config /etc/dsec/${role}.json\n  dsec ${role} --config /etc/dsec/${role}.json --print-config\n`)
      .action(async (flags: { config: string; printConfig?: boolean }) => {
        const config = loadConfig({ file: flags.config, env: process.env });
        if (flags.printConfig) {
          process.stdout.write(`${JSON.stringify(config, null, 2)}\n`);
          return;
        }
        process.exit(await serve([role], config, lent));
      });
};
