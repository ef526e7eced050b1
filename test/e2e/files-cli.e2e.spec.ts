/** `dsec cp`, `dsec cat` and `dsec ls-files` as a shell uses them. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { projectRoot } from '#runtime/project-root.ts';
import { type FilesStand, inside, startFilesStand } from '#test/helpers/files.ts';

let stand: FilesStand;
let id: string;
let dir: string;

beforeAll(async () => {
  stand = await startFilesStand();
  id = stand.box.id;
});
afterAll(() => stand?.close());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-cp-'));
  return () => rmSync(dir, { recursive: true, force: true });
});

type Ended = { readonly code: number; readonly out: string; readonly err: string };

const shell = (script: string): Promise<Ended> =>
  new Promise((resolve) => {
    const env = { ...process.env, DSEC_CONTEXT: stand.host.platform.contextFile, ID: id, DSEC: `${process.execPath} ${join(projectRoot(), 'build/dsec.mjs')}` };
    execFile('bash', ['-c', script], { cwd: dir, env, encoding: 'latin1' }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });

test('a file: to a name, into a directory, and back', async () => {
  writeFileSync(join(dir, 'a'), Buffer.from([0, 255, 10]), { mode: 0o700 });
  expect(
    await shell(
      '$DSEC cp a $ID:/w/b && $DSEC cp a $ID:/w && $DSEC cp a $ID:/w/ && $DSEC cp $ID:/w/b c && mkdir d && $DSEC cp $ID:/w/b d && $DSEC cat $ID /w/b',
    ),
  ).toEqual({ code: 0, out: '\0\xff\n', err: '' });
  expect(await inside(stand.box, 'busybox stat -c "%n %s %a" /w/a /w/b')).toBe('/w/a 3 700\n/w/b 3 700\n');
  expect([...readFileSync(join(dir, 'c')), ...readFileSync(join(dir, 'd/b'))]).toEqual([0, 255, 10, 0, 255, 10]);
});

test('an interrupted copy leaves at once, says what stays, and nothing of it runs on inside', async () => {
  const copying = spawn(process.execPath, [join(projectRoot(), 'build/dsec.mjs'), 'cp', '-', `${id}:/w/begun`], {
    env: { ...process.env, DSEC_CONTEXT: stand.host.platform.contextFile },
  });
  let said = '';
  copying.stderr.on('data', (chunk) => {
    said += String(chunk);
  });
  await expect.poll(() => inside(stand.box, 'ls -d /w/begun 2>&1 || true'), { timeout: 30_000 }).toBe('/w/begun\n'); // its input stays open, and silent
  copying.kill('SIGINT');
  expect((await once(copying, 'close'))[0]).toBe(130);
  expect(said).toContain('CANCELLED: interrupted; of a tree what had come stays');
  const agents = () => inside(stand.box, 'cat /proc/[0-9]*/comm 2>&1 | grep -c aether');
  await expect.poll(agents, { timeout: 30_000 }).toBe('1\n');
});

test('a directory: under its name, as a new name, its content; links as links; what is not carried is said', async () => {
  mkdirSync(join(dir, 'src/sub'), { recursive: true });
  const copied = await shell(
    'echo x > src/f; ln -s f src/l; mkfifo src/p; chown 1234 src/f; chmod 4755 src/f; $DSEC cp src $ID:/w && $DSEC cp src $ID:/w/new && $DSEC cp src/. $ID:/w/flat',
  );
  expect(copied.err.split('\n').sort()).toEqual([
    '',
    ...Array(3).fill('dsec: not carried as it is: "f" (set-id)'),
    ...Array(3).fill('dsec: not carried as it is: "p" (fifo)'),
  ]);
  expect(await inside(stand.box, 'cd /w; for d in src new flat; do busybox readlink $d/l; done; busybox stat -c "%n %u %a" src/f')).toBe(
    'f\nf\nf\nsrc/f 0 755\n',
  );
  expect(await shell('$DSEC cp -a src $ID:/w/kept 2>/dev/null; $DSEC cp -a $ID:/w/kept back; stat -c "%u %a" back/f')).toMatchObject({ out: '1234 4755\n' });
  expect(readdirSync(join(dir, 'back')).sort()).toEqual(['f', 'l', 'sub']);
});

test('tar streams on both sides', async () => {
  expect(
    await shell('mkdir t; echo one > t/one; tar -C t -c . | $DSEC cp - $ID:/w/tar; $DSEC cp $ID:/w/tar - | tar -x -O ./one one 2>/dev/null'),
  ).toMatchObject({ out: 'one\n' });
});

test('looking', async () => {
  await inside(stand.box, 'mkdir /w/look; cd /w/look; echo hello > f; ln -s f l; chmod 640 f');
  expect((await shell('$DSEC ls-files $ID /w/look')).out).toMatch(
    /^NAME +TYPE +MODE +OWNER +SIZE +MODIFIED +TARGET\nf +file +640 +0:0 +6 .*\nl +symlink +777 .* f\n$/,
  );
  expect(JSON.parse((await shell('$DSEC ls-files --json $ID /w/look | head -1')).out)).toMatchObject({ name: 'f', type: 'file', size: 6, mode: 0o640 });
});

test('refusals name the thing, with the exit code of their kind', async () => {
  expect(await shell('$DSEC cp nothing $ID:/w')).toMatchObject({ code: 2, err: expect.stringContaining('nothing') });
  expect(await shell('$DSEC cp $ID:/nothing x')).toMatchObject({ code: 5, err: expect.stringContaining('/nothing') });
  expect(await shell('$DSEC cat $ID /w')).toMatchObject({ code: 6, err: expect.stringContaining('IS_A_DIRECTORY') });
  expect(await shell('$DSEC cp a b')).toMatchObject({ code: 2 });
  expect(await shell('$DSEC cat $ID /dev/zero')).toMatchObject({ code: 6, err: expect.stringContaining('NOT_REGULAR') });
  expect(statSync(dir).isDirectory()).toBe(true);
});

test('a command line that cannot be understood: one line, a hint, exit code 2; help is no error', async () => {
  const hint = '(dsec --help lists the commands)\n';
  expect(await shell('$DSEC frobnicate')).toEqual({ code: 2, out: '', err: `dsec: unknown command 'frobnicate'\n${hint}` });
  expect(await shell('$DSEC exec $ID')).toEqual({ code: 2, out: '', err: `dsec: missing required argument 'command'\n${hint}` });
  expect(await shell('$DSEC ls --wat')).toMatchObject({ code: 2, err: expect.stringContaining("dsec: unknown option '--wat'") });
  expect(await shell('$DSEC cp --help')).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Examples:') });
  expect(await shell('$DSEC help exec | true; $DSEC --help | head -n 1')).toEqual({ code: 0, out: 'Usage: dsec [options] [command]\n', err: '' });
  expect(await shell('$DSEC --version')).toMatchObject({ code: 0, err: '' });
});
