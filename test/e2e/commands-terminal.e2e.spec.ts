/** Terminals of a sandbox: through the SDK, and as a person uses them with `dsec exec -it` in a real terminal. */
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { projectRoot } from '#runtime/project-root.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { Person } from '#test/helpers/person.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;
const people: Person[] = [];

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  box = await dsec.runContainer({ image: 'small' });
});
afterEach(() => {
  for (const person of people.splice(0)) person.leave();
});

/** Of busybox's shell, which asks where the cursor is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is the question itself
const PROMPT = /# (\u001b\[6n)?$/;
const size = { rows: 24, columns: 80 };

const sit = (args: readonly string[], window: { readonly rows?: number; readonly cols?: number } = {}): Person => {
  const person = new Person(process.execPath, [join(projectRoot(), 'build/dsec.mjs'), ...args], {
    env: { DSEC_CONTEXT: host.platform.contextFile },
    ...window,
  });
  people.push(person);
  return person;
};
const shell = async (): Promise<Person> => {
  const person = sit(['exec', '-it', box.id, '--', 'sh'], { rows: 30, cols: 100 });
  await person.sees(PROMPT, 0);
  return person;
};
/** Reads whole lines, unlike a shell with an editor of its own. */
const LISTENER = ['sh', '-c', 'echo ready; while read -r line; do eval "$line"; done'];
const listener = async (): Promise<Person> => {
  const person = sit(['exec', '-it', box.id, '--', ...LISTENER], { rows: 30, cols: 100 });
  await person.sees(/ready/, 0);
  return person;
};
const expectRestored = ({ modes }: Person): void => {
  expect(modes).toHaveLength(2);
  expect(modes[0]).toMatch(/ icanon .* echo /);
  expect(modes[1]).toBe(modes[0]);
};
const lastCommand = async (): Promise<string> => (await box.commands())[0]?.execId ?? '';

describe('through the SDK', () => {
  test('a command on a terminal has it for everything: size, control, one stream', async () => {
    const command = await box.start('tty; stty size; echo out; echo err >&2; [ -t 0 ] && echo typed; echo $TERM', { terminal: { rows: 33, columns: 111 } });
    const result = await command.result();
    expect(result.stdout).toBe('/dev/pts/0\r\n33 111\r\nout\r\nerr\r\ntyped\r\nxterm\r\n');
    expect(result).toMatchObject({ stderr: '', exitCode: 0, pipesOpen: false });
    expect((await command.view()).terminal).toBe(true);
  });

  test('no input is the end of input, and so is the end of what was given', async () => {
    expect((await box.exec(['cat'], { terminal: size, timeoutMs: 10_000 })).exitCode).toBe(0);
    expect(await box.exec(['cat'], { terminal: size, stdin: 'a\nb', timeoutMs: 10_000 })).toMatchObject({ stdout: 'a\r\nba\r\nb', exitCode: 0 });
  });

  test('signals go through the terminal to whoever is in its foreground', async () => {
    const command = await box.start(['sh', '-c', 'trap "echo shell got it" INT; sleep 60; echo sleep gave $?'], { terminal: size, stdin: 'open' });
    await box.runShell('while ! ps | grep -q "[s]leep 60"; do sleep 0.05; done');
    await command.stdin.write('\x03');
    expect((await command.result()).stdout).toBe('^Cshell got it\r\nsleep gave 130\r\n');
  });

  test('a new size is told by WINCH', async () => {
    const command = await box.start('trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done', { terminal: size });
    for await (const text of command.stdout.text()) if (text.includes('ready')) break;
    expect(await command.resize({ rows: 50, columns: 132 })).toBe(true);
    expect((await command.result()).stdout).toBe('ready\r\n50 132\r\n');
    expect(await command.resize(size)).toBe(false);
    expect(await (await box.start(['true'])).resize(size)).toBe(false);
  });

  test('the last words of a program are never lost', async () => {
    const ends = await Promise.all(Array.from({ length: 60 }, () => box.runShell('seq 1 2000', { terminal: size })));
    expect(ends.filter(({ stdout }) => stdout.length === 10_893 && stdout.endsWith('1999\r\n2000\r\n'))).toHaveLength(60);
  });

  test('a child in the background keeps the terminal; the call does not wait for it', async () => {
    const result = await box.runShell('trap "" HUP; (sleep 0.5; echo late) & echo started', { terminal: size });
    expect(result).toMatchObject({ stdout: 'started\r\n', exitCode: 0, pipesOpen: true });
    const late = box.attach(result.execId).stdout.with({ until: 'pipe' });
    expect(await late.string()).toBe('started\r\nlate\r\n');
  });

  test('another user owns the terminal that it was given', async () => {
    const result = await box.runShell('stat -c "%u:%g %a" $(tty); echo hello > $(tty)', { terminal: size, user: 'agent' });
    expect(result.stdout).toBe('1000:5 620\r\nhello\r\n');
  });

  test('a terminal whose log is full goes on with its newest bytes', async () => {
    const command = await box.start('seq 1 20000', { terminal: size, outputLimitBytes: 4_096, onFull: 'roll', stdin: 'open' });
    await command.stdout.with({ offset: 0 }).bytes();
    const watched = await command.wait();
    expect(watched).toMatchObject({ stdoutTotalBytes: 128_894, stdoutTruncated: false, exitCode: 0 });
  });
});

describe('as a person', () => {
  test('a shell as if it ran here: prompt, size, its exit code, and the terminal as it was', async () => {
    const person = sit(['exec', '-it', '-e', 'COLOUR=red', box.id, '--', 'sh'], { rows: 30, cols: 100 });
    await person.sees(PROMPT, 0);
    expect(await person.ask('stty size; echo $COLOUR-$TERM', /red-xterm[\s\S]*# /)).toContain('30 100');
    person.resize(41, 123);
    await person.ask('while [ "$(stty size)" != "41 123" ]; do sleep 0.05; done; echo wide', /wide[\s\S]*wide[\s\S]*# /);
    person.type('exit 7\r');
    expect(await person.left).toEqual({ exitCode: 7, signal: 0 });
    expectRestored(person);
  });

  test('Ctrl-C interrupts the program inside and nothing here; Ctrl-D at the prompt ends the shell', async () => {
    const person = await shell();
    const started = person.sees(/sleep 77\r\n/);
    person.type('sleep 77\r');
    await started;
    await box.runShell('while ! ps | grep -q "[s]leep 77"; do sleep 0.05; done');
    const back = person.sees(PROMPT);
    person.type('\x03');
    await back;
    await person.ask('echo $?', /130[\s\S]*# /);
    person.type('\x04');
    expect(await person.left).toEqual({ exitCode: 0, signal: 0 });
  });

  test('the detach keys leave it running; attach comes back to it, and its exit code is ours again', async () => {
    const person = await listener();
    await person.ask('MARK=kept; cd /w; echo done', /\ndone/);
    person.type('\x10\x11');
    expect(await person.left).toEqual({ exitCode: 0, signal: 0 });
    expectRestored(person);
    const [, id = 'none'] = /left running; come back with: dsec attach -i sb-\S+ (ex-\S+)/.exec(person.screen) ?? [];

    const again = sit(['attach', '-i', '--detach-keys', 'ctrl-x', box.id, id], { rows: 20, cols: 60 });
    await again.sees(/done/, 0);
    await again.ask('echo $MARK $PWD $(stty size)', /kept \/w 20 60/);
    again.type('exit 3\r');
    expect((await again.left).exitCode).toBe(3);
  });

  test('keys that only begin as the detach keys do are typed', async () => {
    const person = sit(['exec', '-it', box.id, '--', 'sh', '-c', 'stty raw -echo; echo go; head -c 3 | od -An -tx1; echo'], {});
    await person.sees(/go/, 0);
    person.type('\x10\x10x');
    await person.sees(/10 10 78/, 0);
    expect((await person.left).exitCode).toBe(0);
  });

  test('the Edge is killed under it: the shell is the same afterwards', async () => {
    const person = await listener();
    await person.ask('N=41; echo done', /\ndone/);
    const edge = host.platform.pids().edge;
    if (edge) process.kill(edge, 'SIGKILL');
    await person.ask('echo $((N+1)) answers', /42 answers/);
    person.type('exit\r');
    expect((await person.left).exitCode).toBe(0);
  });

  test.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s to us hangs the program up and gives the terminal back', async (signal, code) => {
    const person = sit(['exec', '-it', box.id, '--', 'sh', '-c', 'trap "exit 9" HUP; echo ready; while :; do sleep 0.05; done']);
    await person.sees(/ready/, 0);
    process.kill(person.pid, signal);
    expect(await person.left).toEqual({ exitCode: code, signal: 0 });
    expectRestored(person);
    const ended = await box.attach(await lastCommand()).wait();
    expect(ended.exitCode).toBe(9);
  });

  test('what cannot be started is said in a line, and the terminal is as it was', async () => {
    const person = sit(['exec', '-it', '-u', 'nobody-here', box.id, '--', 'sh']);
    expect((await person.left).exitCode).toBe(5);
    expect(person.screen).toMatch(/USER_NOT_FOUND: user 'nobody-here'/);
    expectRestored(person);
  });

  test('a sandbox that is stopped under it ends it', async () => {
    await using other = await dsec.runContainer({ image: 'small' });
    const person = sit(['exec', '-it', other.id, '--', 'sh']);
    await person.sees(PROMPT, 0);
    await other.stop();
    expect((await person.left).exitCode).not.toBe(0);
    expectRestored(person);
  });

  test('run makes a sandbox for one shell', async () => {
    const person = sit(['run', '-i', '--tty', 'small', '--', 'sh']);
    await person.sees(PROMPT, 0);
    await person.ask('hostname', /sb-/);
    person.type('exit 4\r');
    expect((await person.left).exitCode).toBe(4);
  });
});
