/** The one program: server commands, node commands and the SDK's client commands under one name. */
import { Command } from 'commander';
import { ERRORS, toWireError } from '#bus/errors.ts';
import { registerClientCommands } from '#sdk/cli/commands.ts';
import { loadConfig, pathsOf } from '../config.ts';
import { registerDoctorCommand } from '../doctor/command.ts';
import { registerImageCommands } from '../images/cli.ts';
import { liveLayers } from '../roles/live-layers.ts';
import { registerServerCommands } from '../roles/up/command.ts';
import { PLATFORM_VERSION } from '../version.ts';

/** Commands that work on this node's files without a running platform; DSEC_DATA_DIR and DSEC_LAYERS_DIR say where. */
const nodeConfig = () => loadConfig({ file: process.env.DSEC_CONFIG, env: process.env });

const program = new Command('dsec')
  .description('DSec: isolated, stateful sandboxes for training and evaluating agents')
  .version(PLATFORM_VERSION)
  .showHelpAfterError('(dsec --help lists the commands)');

registerServerCommands(program);
registerDoctorCommand(program);
registerImageCommands(program, { layersDir: () => pathsOf(nodeConfig()).layers, liveLayers: () => liveLayers(nodeConfig()) });
registerClientCommands(program);

program.parseAsync().catch((thrown: unknown) => {
  const { code, message } = toWireError(thrown);
  process.stderr.write(`dsec: ${code}: ${message}\n`);
  if (process.env.DSEC_DEBUG === '1') process.stderr.write(`${(thrown as Error).stack}\n`);
  process.exitCode = ERRORS[code].exit;
});
