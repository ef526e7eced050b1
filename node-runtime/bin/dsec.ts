/** The one program: server commands, node commands and the SDK's client commands under one name. */
import type { NatsConnection } from '@nats-io/transport-node';
import { Command } from 'commander';
import { registerClientCommands } from '#sdk/cli/commands.ts';
import { report } from '#sdk/cli/session.ts';
import { EpisodeHands } from '#sdk/episode/hands.ts';
import { loadConfig, pathsOf } from '../config.ts';
import { registerDoctorCommand } from '../doctor/command.ts';
import { registerImageCommands } from '../images/cli.ts';
import { liveLayers } from '../roles/live-layers.ts';
import { registerNodeCommands } from '../nodes/cli.ts';
import { registerRoleCommands } from '../roles/up/role-commands.ts';
import { registerServerCommands } from '../roles/up/command.ts';
import { PLATFORM_VERSION } from '../version.ts';
import { ownArguments } from './arguments.ts';

/** Commands that work on this node's files without a running platform: --data-dir, DSEC_DATA_DIR and DSEC_LAYERS_DIR say where. */
let flags: { readonly dataDir?: string } = {};
const nodeConfig = () => loadConfig({ file: process.env.DSEC_CONFIG, env: process.env, flags });

const program = new Command('dsec')
  .description('DSec: isolated, stateful sandboxes for training and evaluating agents')
  .version(PLATFORM_VERSION)
  .showHelpAfterError('(dsec --help lists the commands)');

const lent = { hands: (connection: NatsConnection) => new EpisodeHands(connection) };
registerServerCommands(program, lent);
registerRoleCommands(program, lent);
registerNodeCommands(program, { config: nodeConfig });
registerDoctorCommand(program);
registerImageCommands(program, { layersDir: () => pathsOf(nodeConfig()).layers, liveLayers: () => liveLayers(nodeConfig()) });
for (const command of program.commands.find((each) => each.name() === 'image')?.commands ?? [])
  command.option('--data-dir <dir>', "the platform's data directory (default: $DSEC_DATA_DIR, else /var/lib/dsec)").hook('preAction', () => {
    const { dataDir } = command.opts<{ dataDir?: string }>();
    if (dataDir !== undefined) flags = { dataDir };
  });
registerClientCommands(program);

program.parseAsync(ownArguments(), { from: 'user' }).catch(async (thrown: unknown) => {
  process.exitCode = await report(thrown);
});
