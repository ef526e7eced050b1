/** Terminals as a way to Aether, which holds their other ends, and to other commands. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { type IPty, spawn } from 'node-pty';
import type { Sandbox } from '#sdk/mod.ts';
import { Lab } from './lab.ts';

const SIZE = { rows: 24, columns: 80 };
/** What one sandbox may have open (`TERMINALS_MAX` of the launcher). */
const TERMINALS = 128;

let lab: Lab;
let box: Sandbox;

beforeAll(async () => {
  lab = await Lab.open();
  box = await lab.sandbox({ pidsLimit: 1_000 });
});
afterAll(() => lab?.close());

/** A command on a terminal, and the terminal's name. */
const onTerminal = async (script: string) => {
  const command = await box.start(['sh', '-c', `busybox tty; ${script}`], { terminal: SIZE, stdin: 'open' });
  for await (const text of command.stdout.text()) if (text.includes('\n')) return { command, name: text.trim() };
  throw new Error('it said no name');
};

test('a user cannot open the terminal of another’s command', async () => {
  const { command, name } = await onTerminal('sleep 1000');
  expect((await box.runShell(`echo x > ${name}`, { user: 'agent' })).stderr).toMatch(/Permission denied|can't create/);
  await command.kill();
});

test('root floods, holds and changes the terminal of another command: that command alone is hit, its end is told', async () => {
  const { command, name } = await onTerminal('read line; echo "got $line"; exit 7');
  const flood = await box.start(`busybox yes flood > ${name}`);
  const holder = await box.start(`exec 3<>${name}; busybox stty -F ${name} -echo; sleep 1000`);
  for (let i = 0; i < 10; i += 1) expect((await box.exec(['true'])).ok).toBe(true);
  await delay(100);
  await flood.kill();
  await command.stdin.write('hello\n');
  expect(await command.wait()).toMatchObject({ exitCode: 7, reason: 'exited', pipesOpen: true });
  await holder.kill();
});

test('nothing is typed into another’s terminal from inside, and it is neither taken over nor hung up', async () => {
  const { command, name } = await onTerminal('sleep 1000');
  const inside = await lab.inside(box, ['terminal', name]);
  expect([...inside.keys()]).toEqual(['TIOCSTI', 'TIOCSCTTY, stolen', 'TIOCVHANGUP']);
  expect([...inside.values()].filter((outcome) => !/^(EPERM|EIO)$/.test(outcome))).toEqual([]);
  await command.kill();
});

test('control: root of the host does all of that', async () => {
  const terminal = spawn('sleep', ['1000'], {}) as IPty & { readonly ptsName: string };
  const outcomes = lab.onHost('terminal', terminal.ptsName);
  terminal.kill('SIGKILL');
  expect([...outcomes.values()].filter((outcome) => !outcome.startsWith('ok'))).toEqual([]);
});

test('all terminals of the sandbox are taken: it has no more than its own, a neighbour has those of its own, and they come back', async () => {
  await using neighbour = await lab.sandbox();
  const starts = Array.from({ length: TERMINALS + 12 }, () =>
    box.start(['sleep', '1000'], { terminal: SIZE, signal: AbortSignal.timeout(5_000) }).catch(() => undefined),
  );
  const taken = (await Promise.all(starts)).filter((command) => command !== undefined);
  expect(taken.length).toBeLessThanOrEqual(TERMINALS);
  expect(taken.length).toBeGreaterThan(TERMINALS - 8);
  expect((await box.exec(['true'])).ok).toBe(true);
  expect((await neighbour.exec(['true'], { terminal: SIZE })).ok).toBe(true);
  await Promise.all((await box.commands()).filter(({ state }) => state === 'running').map(({ execId }) => box.attach(execId).kill()));
  expect((await box.exec(['true'], { terminal: SIZE })).ok).toBe(true);
});
