/** Shell sessions: what a script leaves is there for the next, in bash, dash and busybox; one that hangs takes nothing else with it. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { buildLayer } from '#runtime/images/mod.ts';
import { type DsecClient, DsecError, type Sandbox, type ShellResult } from '#sdk/mod.ts';
import { copyProgram } from '#test/helpers/dynamic-programs.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { makeBusyboxRoot, type TestPlatform } from '#test/helpers/platform.ts';

let host: TestPlatform;
let dsec: DsecClient;
const boxes = new Map<string, Sandbox>();

const buildShellLayer = async (name: string, program: string, as: string): Promise<void> => {
  const root = join(host.dir, name);
  makeBusyboxRoot(root);
  copyProgram(root, program, as);
  await buildLayer(host.store, { name, kind: 'base', source: { type: 'directory', path: root } });
};

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  await buildShellLayer('with-bash', '/bin/bash', '/bin/bash');
  await buildShellLayer('with-dash', '/bin/dash', '/bin/dash');
  for (const image of ['small', 'with-bash', 'with-dash']) boxes.set(image, await dsec.runContainer({ image }));
  await boxes.get('with-dash')?.runShell('ln -sf dash /bin/sh');
});

const box = (image: string): Sandbox => boxes.get(image) ?? expect.unreachable(`no sandbox of ${image}`);

describe.each([
  ['small', 'busybox'],
  ['with-bash', 'bash'],
  ['with-dash', 'dash'],
])('in %s', (image, shellName) => {
  test('it is the shell that is expected', async () => {
    await using shell = await box(image).openShell();
    expect((await shell.run('ls -l /proc/$$/exe')).stdout).toMatch(new RegExp(shellName));
  });

  test('directory, variables, functions and options stay; streams are apart; codes are the script’s', async () => {
    await using shell = await box(image).openShell({ env: { GIVEN: 'here' }, cwd: '/etc' });
    expect(await shell.run('pwd; echo $GIVEN; echo to-err >&2; A=1; export B=two; twice() { echo "$1$1"; }; cd /w; false')).toMatchObject({
      stdout: '/etc\nhere\n',
      stderr: 'to-err\n',
      exitCode: 1,
      reason: 'exited',
      fault: 'agent',
      shellEnded: false,
    });
    expect(await shell.run(`twice "$A"; env | grep ^B=; pwd`)).toMatchObject({ stdout: '11\nB=two\n/w\n', stderr: '', exitCode: 0, ok: true });
  });

  test('any text is a script: quotes, many lines, here-documents, no end of line, nothing', async () => {
    await using shell = await box(image).openShell();
    expect((await shell.run(`echo 'it'"'"'s' "\\$x" \`echo back\``)).stdout).toBe("it's $x back\n");
    expect((await shell.run('cat <<END\nline 1\nline 2\nEND\nfor i in 1 2\ndo\n  echo $i\ndone')).stdout).toBe('line 1\nline 2\n1\n2\n');
    expect((await shell.run('printf no-newline')).stdout).toBe('no-newline');
    expect(await shell.run('')).toMatchObject({ stdout: '', exitCode: 0 });
    expect((await shell.run('# only a comment')).exitCode).toBe(0);
  });

  test('a mistake in the syntax is the script’s failure and not the shell’s', async () => {
    await using shell = await box(image).openShell();
    const broken = await shell.run('if true; then echo');
    expect(broken.exitCode).not.toBe(0);
    expect(broken.stderr).not.toBe('');
    expect((await shell.run('echo alive')).stdout).toBe('alive\n');
  });

  test('a script reads nothing of the next ones, and may trace or redirect for ever', async () => {
    await using shell = await box(image).openShell();
    expect(await shell.run('cat; read line; echo "[$line]"')).toMatchObject({ stdout: '[]\n', exitCode: 0 });
    const traced = await shell.run('set -x; echo traced; set +x');
    expect(traced.stdout).toBe('traced\n');
    expect(traced.stderr).toContain('echo traced');
    await shell.run('exec >/w/redirected');
    expect((await shell.run('echo into the file')).stdout).toBe('');
    expect((await shell.run('cat /w/redirected >&2')).stderr).toBe('into the file\n');
  });

  test('output of megabytes is exact, and beyond the limit it is counted', async () => {
    await using shell = await box(image).openShell();
    const long = await shell.run('seq 1 200000; seq 1 200000 >&2');
    expect([long.stdoutTotalBytes, long.stderrTotalBytes, long.truncated]).toEqual([1_288_895, 1_288_895, false]);
    expect(long.stderr).toBe(long.stdout);
    expect(await shell.run('seq 1 3000; exit_code_is() { return 4; }; exit_code_is', { outputLimitBytes: 1_024 })).toMatchObject({
      stdoutTotalBytes: 13_893,
      truncated: true,
      exitCode: 4,
    });
  });

  test.each([
    ['a program that hangs', 'echo partial; sleep 9871'],
    ['one that ignores TERM, in a session of its own', 'echo partial; trap "" TERM; setsid sleep 9872'],
    ['a loop of programs', 'echo partial; while true; do sleep 0.02; done'],
    ['a loop in the shell itself', 'echo partial; while :; do :; done'],
    ['a loop in functions of functions', 'echo partial; inner() { while :; do :; done; }; outer() { inner; }; outer'],
    ['a loop behind a pipe', 'echo partial; while :; do echo x; done | cat >/dev/null'],
  ])('a time-out breaks off %s; the shell and its older children live on', async (_, script) => {
    await using shell = await box(image).openShell();
    await shell.run('KEPT=yes; cd /w; sleep 1234 & OLD=$!');
    const hung = await shell.run(script, { timeoutMs: 1_000 });
    expect(hung).toMatchObject({ stdout: 'partial\n', exitCode: null, reason: 'timeout', fault: 'agent', shellEnded: false });
    expect((await shell.run('echo $KEPT $PWD; kill -0 $OLD && echo older lives')).stdout).toBe('yes /w\nolder lives\n');
    expect((await box(image).runShell('ps | grep -c "[s]leep 987"')).stdout).toBe('0\n');
  });
});

test('abort breaks off as a time-out does', async () => {
  await using shell = await box('small').openShell();
  await shell.run('HERE=1');
  expect(await shell.run('sleep 9876', { signal: AbortSignal.timeout(200) })).toMatchObject({ reason: 'cancelled', exitCode: null, shellEnded: false });
  expect((await shell.run('echo $HERE')).stdout).toBe('1\n');
});

test('scripts called at once run one after another', async () => {
  await using shell = await box('small').openShell();
  await shell.run('n=0');
  const results = await Promise.all(Array.from({ length: 20 }, () => shell.run('n=$((n+1)); echo $n')));
  expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 20 }, (_, i) => `${i + 1}\n`));
});

test('`exit` ends the shell with its code; what comes after is told so', async () => {
  const shell = await box('small').openShell();
  expect(await shell.run('echo bye; exit 3')).toMatchObject({ stdout: 'bye\n', exitCode: 3, reason: 'exited', shellEnded: true });
  await expect(shell.run('echo more')).rejects.toMatchObject({ name: 'DsecError', code: 'INVALID_STATE' });
  await shell.close();
});

test('close ends everything that was started in it', async () => {
  const shell = await box('small').openShell();
  await shell.run('sleep 4711 & setsid sleep 4711 &');
  await shell.close();
  await shell.close();
  await expect.poll(async () => (await box('small').runShell('ps | grep -c "[s]leep 4711"')).stdout, { timeout: 20_000 }).toBe('0\n');
});

test('the Edge is killed: between two scripts, and under one', async () => {
  await using shell = await box('small').openShell();
  await shell.run('COUNT=1; cd /w');
  const kill = (): void => void process.kill(host.platform.pids().edge ?? expect.unreachable('no Edge'), 'SIGKILL');
  kill();
  expect((await shell.run('echo $COUNT $PWD')).stdout).toBe('1 /w\n');
  const running = shell.run('for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done; COUNT=2');
  await box('small').runShell('sleep 0.3');
  kill();
  expect((await running).stdout).toBe('1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n');
  expect((await shell.run('echo $COUNT')).stdout).toBe('2\n');
});

test.each([
  ['of a script', () => ({})],
  ['of breaking one off', (n: number) => ({ signal: AbortSignal.timeout(n % 5) })],
])('sandboxes that end at any moment %s take their shells along, and say so', async (_, options) => {
  const answers = await Promise.all(
    Array.from({ length: 24 }, async (__, i) => {
      await using short = await dsec.runContainer({ image: 'small' });
      const shell = await short.openShell();
      const running = shell.run('sleep 60', options(i)).catch((thrown: unknown) => thrown);
      await delay(i % 12); // before the script is written, on its way, and while it runs
      await short.stop();
      return running;
    }),
  );
  for (const answer of answers)
    if (answer instanceof DsecError) expect(answer).toMatchObject({ code: 'SANDBOX_ENDED' });
    else expect(answer).toMatchObject((answer as ShellResult).reason === 'cancelled' ? { exitCode: null } : { exitCode: null, shellEnded: true });
});
