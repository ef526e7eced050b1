/** `dsec up`: the platform in the foreground until Ctrl-C; and `dsec serve`: one process of it. */
import type { Command } from 'commander';
import { DsecError, toWireError } from '#bus/errors.ts';
import { type ConfigInput, loadConfig } from '../../config.ts';
import { createLog } from '../../log/log.ts';
import type { Lent } from '../jobs/role.ts';
import { serve } from '../serve.ts';
import { SERVED_ROLES, type ServedRole } from '../supervision.ts';
import { startPlatform } from './platform.ts';

type UpFlags = {
  config?: string;
  dataDir?: string;
  runDir?: string;
  edgeName?: string;
  project?: string;
  logLevel?: ConfigInput['logLevel'];
  maxSandboxes?: string;
  keepSandboxes?: boolean;
  printConfig?: boolean;
};

const flagsOf = ({ dataDir, runDir, edgeName, project, logLevel, maxSandboxes }: UpFlags): Partial<ConfigInput> => ({
  ...(dataDir === undefined ? {} : { dataDir }),
  ...(runDir === undefined ? {} : { runDir }),
  ...(edgeName === undefined ? {} : { edgeName: edgeName as ConfigInput['edgeName'] }),
  ...(project === undefined ? {} : { project: project as ConfigInput['project'] }),
  ...(logLevel === undefined ? {} : { logLevel }),
  ...(maxSandboxes === undefined ? {} : { maxSandboxes: Number(maxSandboxes) }),
});

export const registerServerCommands = (program: Command, lent: Lent): void => {
  program
    .command('up')
    .description('start the whole platform on this machine and stay until Ctrl-C')
    .option('--config <file>', 'configuration file (JSON)')
    .option('--data-dir <dir>', 'where layers, uppers, logs and the bus live')
    .option('--run-dir <dir>', 'where sockets and mounts live; keep it short')
    .option('--edge-name <name>', 'name of this node')
    .option('--project <name>', 'first project')
    .option('--max-sandboxes <n>', 'most sandboxes on this node')
    .option('--log-level <level>', 'debug, info, warn, error or silent')
    .option('--keep-sandboxes', 'at Ctrl-C leave the sandboxes running; the next dsec up finds them')
    .option('--print-config', 'print the configuration that results, and end')
    .addHelpText('after', '\nExamples:\n  dsec up\n  dsec up --data-dir /srv/dsec --run-dir /run/dsec-2 --log-level debug\n')
    .action(async (flags: UpFlags) => {
      const config = loadConfig({ file: flags.config, env: process.env, flags: flagsOf(flags) });
      if (flags.printConfig) {
        process.stdout.write(`${JSON.stringify(config, null, 2)}\n`);
        return;
      }
      process.exitCode = await up(config, flags.keepSandboxes === true);
    });

  program
    .command('serve')
    .description('play one or more roles in this process (what dsec up starts)')
    .argument('<roles...>', SERVED_ROLES.join(', '))
    .requiredOption('--config <file>', 'configuration file (JSON)')
    .addHelpText('after', '\nExample:\n  dsec serve apiserver placement --config /etc/dsec.json\n')
    .action(async (roles: string[], flags: { config: string }) => {
      const unknown = roles.find((role) => !(SERVED_ROLES as readonly string[]).includes(role));
      if (unknown !== undefined) throw DsecError.of('INVALID_ARGUMENT', `there is no role ${unknown}; known: ${SERVED_ROLES.join(', ')}`);
      process.exit(await serve(roles as ServedRole[], loadConfig({ file: flags.config, env: process.env }), lent));
    });
};

const up = async (config: ReturnType<typeof loadConfig>, keepSandboxes: boolean): Promise<number> => {
  const say = (line: string) => process.stderr.write(`dsec up: ${line}\n`);
  const stop = new Promise<string>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
  let interrupted = false;
  void stop.then(() => {
    interrupted = true;
  });
  try {
    const platform = await startPlatform({ config, log: createLog('up', config.logLevel), onProgress: say });
    say(`ready. Clients: export DSEC_CONTEXT=${platform.contextFile}; Ctrl-C ends everything`);
    await stop;
    say(keepSandboxes ? 'ending the roles; sandboxes go on' : 'ending the sandboxes, then the roles (Ctrl-C again does not hurry them)');
    process.on('SIGINT', () => {});
    await (keepSandboxes ? platform.closeKeepingSandboxes() : platform.close());
    say('ended; nothing is left running');
    return 0;
  } catch (thrown) {
    const { code, message } = toWireError(thrown);
    say(`${code}: ${message}`);
    return interrupted ? 130 : 1;
  }
};
