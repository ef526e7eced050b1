/** The client commands alone as a program, for tests that use them as a person or a shell script would. */
import { Command } from 'commander';
import { registerClientCommands } from '../cli/commands.ts';

const program = new Command('dsec');
registerClientCommands(program);
await program.parseAsync();
