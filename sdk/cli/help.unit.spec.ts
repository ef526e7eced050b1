/** Help of every client command, as it is printed. */
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { registerClientCommands } from './commands.ts';

const helpOf = (command: Command): string => {
  let printed = '';
  command.configureOutput({
    writeOut: (text) => {
      printed += text;
    },
  });
  command.outputHelp();
  return printed;
};

test('--help of each command says what it does and has an example', () => {
  const program = new Command('dsec');
  registerClientCommands(program);
  expect(program.commands.length).toBeGreaterThan(25);
  for (const command of program.commands) {
    expect.soft(command.description(), command.name()).toMatch(/^[a-z].{10,}/);
    expect.soft([command, ...command.commands].map(helpOf).join('\n'), command.name()).toMatch(/^Examples?:\n {2}dsec /m);
  }
});
