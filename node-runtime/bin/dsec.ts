/** The one program: server commands, node commands and the SDK's client commands under one name. */
import './before-libraries.ts';
import type { NatsConnection } from '@nats-io/transport-node';
import { Command, CommanderError } from 'commander';
import { ERRORS } from '#bus/errors.ts';
import { registerClientCommands } from '#sdk/cli/commands.ts';
import { EXIT_OUTPUT_CLOSED, report } from '#sdk/cli/session.ts';
import { EpisodeHands } from '#sdk/episode/hands.ts';
import { loadConfig } from '../config.ts';
import { registerDoctorCommand } from '../doctor/command.ts';
import { registerImageCommands } from '../images/cli.ts';
import { startTracing, type Tracing } from '../tracing/start.ts';
import { SERVED_ROLES } from '../roles/supervision.ts';
import { withLayerStore } from '../roles/layer-store.ts';
import { liveLayers } from '../roles/live-layers.ts';
import { registerNodeCommands } from '../nodes/cli.ts';
import { registerRoleCommands } from '../roles/up/role-commands.ts';
import { registerServerCommands } from '../roles/up/command.ts';
import { PLATFORM_VERSION } from '../version.ts';
import { ownArguments } from './arguments.ts';

Error.stackTraceLimit = 10;

/** Commands that work on this node's files without a running platform: --data-dir, DSEC_DATA_DIR and DSEC_LAYERS_DIR say where. */
let flags: { readonly dataDir?: string } = {};
const nodeConfig = () => loadConfig({ file: process.env.DSEC_CONFIG, env: process.env, flags });

const program = new Command('dsec')
  .description('DSec: isolated, stateful sandboxes for training and evaluating agents')
  .version(PLATFORM_VERSION)
  .showHelpAfterError('(dsec --help lists the commands)')
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'dsec: ')) })
  .exitOverride();

const lent = { hands: (connection: NatsConnection) => new EpisodeHands(connection) };
program.commandsGroup('The platform:');
registerServerCommands(program, lent);
registerRoleCommands(program, lent);
program.commandsGroup('Nodes and images:');
registerNodeCommands(program, { config: nodeConfig });
registerDoctorCommand(program);
registerImageCommands(program, { withStore: (work) => withLayerStore(nodeConfig(), work), liveLayers: () => liveLayers(nodeConfig()) });
for (const command of program.commands.find((each) => each.name() === 'image')?.commands ?? [])
  command.option('--data-dir <dir>', "the platform's data directory (default: $DSEC_DATA_DIR, else /var/lib/dsec)").hook('preAction', () => {
    const { dataDir } = command.opts<{ dataDir?: string }>();
    if (dataDir !== undefined) flags = { dataDir };
  });
registerClientCommands(program);

/** A reader that has left, as `head` does, is no accident; the commands that have something to tidy up see to that themselves. */
for (const output of [process.stdout, process.stderr])
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exitCode = EXIT_OUTPUT_CLOSED;
  });

/** What a client command calls begins a trace. Roles trace by their configuration; `up` does nothing itself. */
const UNTRACED: ReadonlySet<string> = new Set([...SERVED_ROLES, 'serve', 'up']);
let tracing: Tracing | undefined;
program.hook('preAction', async (_, command) => {
  if (!UNTRACED.has(command.name())) tracing = await startTracing(loadConfig({ env: process.env }).traces, 'dsec-cli');
});

const run = async (): Promise<void> => {
  try {
    await program.parseAsync(ownArguments(), { from: 'user' });
  } finally {
    await tracing?.close().catch(() => {}); // a collector that is away is no failure of the command
  }
};

run().catch(async (thrown: unknown) => {
  // a command line that cannot be understood has been explained already, and counts as any other wrong argument
  if (thrown instanceof CommanderError) process.exitCode = thrown.exitCode === 0 ? 0 : ERRORS.INVALID_ARGUMENT.exit;
  else process.exitCode = await report(thrown);
});
