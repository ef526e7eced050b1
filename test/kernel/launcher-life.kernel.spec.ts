/** Birth and death of sandboxes: repeatable, in parallel, and nothing left of those that fail. */
import { existsSync, lstatSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LauncherStand } from './launcher-stand.ts';

let stand: LauncherStand;

beforeAll(async () => {
  stand = new LauncherStand();
  await stand.connect();
});

afterAll(async () => {
  expect(await stand.close()).toEqual([]);
});

test('a launch is answered once the sandbox takes commands; a repeat is answered with the same', async () => {
  const launched = await stand.client.launch(stand.spec(1));
  expect(await stand.client.launch(stand.spec(1))).toEqual(launched);
  expect(await stand.client.list()).toEqual([{ id: stand.id(1), pid: launched.pid }]);
  const sandbox = await stand.attach(1, launched.pid);
  expect(await sandbox.run('echo hello; echo oops >&2; exit 3')).toEqual({ code: 3, stdout: 'hello\n', stderr: 'oops\n' });
  sandbox.close();
  await stand.client.destroy({ id: stand.id(1) });
  expect(stand.leftovers()).toEqual([]);
  expect(existsSync(`/proc/${launched.pid}`)).toBe(false);
});

test('a destroyed sandbox does not come back until it is forgotten', async () => {
  await stand.client.launch(stand.spec(2));
  await stand.client.destroy({ id: stand.id(2) });
  await stand.client.destroy({ id: stand.id(2) });
  await expect(stand.client.launch(stand.spec(2))).rejects.toMatchObject({ code: 'SANDBOX_ENDED' });
  await stand.client.forget(stand.id(2));
  await stand.client.launch(stand.spec(2));
  await stand.client.destroy({ id: stand.id(2) });
});

test('destroying what never was leaves a tombstone too: a launch that comes late is refused', async () => {
  await stand.client.destroy({ id: stand.id(3) });
  await expect(stand.client.launch(stand.spec(3))).rejects.toMatchObject({ code: 'SANDBOX_ENDED' });
});

test('a destroy overtakes the launch that is in flight', async () => {
  const { pid } = stand.client.info;
  process.kill(pid, 'SIGSTOP'); // it finds both when it goes on, the destroy behind the launch
  const launch = stand.client.launch(stand.spec(4));
  const destroy = stand.client.destroy({ id: stand.id(4) });
  await setImmediate();
  process.kill(pid, 'SIGCONT');
  await expect(launch).rejects.toMatchObject({ code: 'SANDBOX_ENDED' });
  await destroy;
  expect(stand.leftovers()).toEqual([]);
});

test('several requests for one launch share it', async () => {
  const answers = await Promise.all([1, 2, 3, 4].map(() => stand.client.launch(stand.spec(5))));
  expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
  await Promise.all([1, 2, 3].map(() => stand.client.destroy({ id: stand.id(5) })));
});

test('many launches and destroys in flight at once', async () => {
  const numbers = Array.from({ length: 40 }, (_, i) => 100 + i);
  const launched = await Promise.all(numbers.map((n) => stand.client.launch(stand.spec(n))));
  expect(new Set(launched.map(({ pid }) => pid)).size).toBe(numbers.length);
  expect((await stand.client.list()).map(({ id }) => id).sort()).toEqual(numbers.map((n) => stand.id(n)).sort());
  await Promise.all(numbers.map((n) => stand.client.destroy({ id: stand.id(n) })));
  expect(stand.leftovers()).toEqual([]);
});

test('two sandboxes never share a range of ids', async () => {
  await stand.client.launch(stand.spec(6));
  await expect(stand.client.launch(stand.spec(7, { slot: 6 }))).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(stand.id(6)),
  });
  await stand.client.destroy({ id: stand.id(6) });
  await stand.client.launch(stand.spec(7, { slot: 6 }));
  await stand.client.destroy({ id: stand.id(7) });
});

test('the directories are the sandbox root’s, and go to the trash with it', async () => {
  await stand.client.launch(stand.spec(8, { slot: 321 }));
  const owner = 100_000 + 321 * 65_536;
  for (const name of ['upper', 'work', 'exec']) expect(statSync(join(stand.box(8), name))).toMatchObject({ uid: owner, gid: owner });
  expect(lstatSync(join(stand.box(8), 'upper')).mode & 0o7777).toBe(0o755);
  await stand.client.destroy({ id: stand.id(8) });
  expect(readdirSync(stand.box(8))).toEqual(['exec']);
  expect(readdirSync(stand.trashDir)).toEqual(expect.arrayContaining([`${stand.id(8)}.upper.0`, `${stand.id(8)}.work.0`]));
});

test('a layer that is not mounted is named, before anything is made', async () => {
  const missing = `sha256:${'0'.repeat(64)}`;
  await expect(stand.client.launch(stand.spec(9, { layers: [missing] }))).rejects.toMatchObject({
    code: 'LAYER_NOT_FOUND',
    message: expect.stringContaining(missing),
  });
  expect(stand.leftovers()).toEqual([]);
});

test('bad fields are refused by name', async () => {
  for (const [field, overrides] of [
    ['hostname', { hostname: 'a b' }],
    ['memoryMiB', { memoryMiB: 0 }],
    ['slot', { slot: 65_534 }],
    ['upper', { upper: 'relative' }],
    ['socket', { socket: `/${'x'.repeat(120)}` }],
    ['id', { id: 'sb-../../etc' }],
  ] as const) {
    await expect(stand.client.launch(stand.spec(10, overrides))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(field) });
  }
  await expect(stand.client.launch(stand.spec(10, { hostname: 'a\0slot=1' }))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(stand.leftovers()).toEqual([]);
});

test('a launch that fails on the way leaves nothing', async () => {
  mkdirSync(stand.box(11), { recursive: true });
  writeFileSync(join(stand.box(11), 'exec'), 'in the way');
  await expect(stand.client.launch(stand.spec(11))).rejects.toMatchObject({ code: 'START_FAILED', details: { step: 'make exec directory', errno: 'ENOTDIR' } });
  expect(stand.leftovers()).toEqual([]);
  expect(await stand.client.list()).toEqual([]);
});

test('an image whose /proc is a link to somewhere is refused, and nothing is mounted there', async () => {
  const image = stand.image('hostile', (root) => {
    for (const sub of ['dev', 'sys', 'etc', 'tmp']) mkdirSync(join(root, sub));
    symlinkSync('/etc', join(root, 'proc'));
  });
  await stand.client.mountImage(image.digest, image.path);
  await expect(stand.client.launch(stand.spec(12, { layers: [image.digest] }))).rejects.toMatchObject({
    code: 'START_FAILED',
    details: { step: 'mount /proc', errno: 'ELOOP' },
  });
  expect(stand.leftovers()).toEqual([]);
  await stand.client.umountImage(image.digest);
});

test('images: mounted once, not unmounted while in use, missing files named', async () => {
  await stand.client.mountImage(stand.base.digest, stand.base.path);
  expect(await stand.client.listImages()).toEqual([stand.base.digest]);
  await stand.client.launch(stand.spec(13));
  await expect(stand.client.umountImage(stand.base.digest)).rejects.toMatchObject({ code: 'OVERLOADED' });
  await stand.client.destroy({ id: stand.id(13) });
  const gone = `sha256:${'1'.repeat(64)}`;
  await expect(stand.client.mountImage(gone, join(stand.dir, 'nothing.erofs'))).rejects.toMatchObject({ code: 'LAYER_NOT_FOUND' });
  writeFileSync(join(stand.dir, 'garbage.erofs'), 'x'.repeat(8_192));
  await expect(stand.client.mountImage(gone, join(stand.dir, 'garbage.erofs'))).rejects.toMatchObject({
    code: 'LAUNCH_FAILED',
    details: { step: 'mount image' },
  });
  expect(await stand.client.listImages()).toEqual([stand.base.digest]);
});
