/** Names are bytes, paths are the sandbox's own, refusals have types: the calls that are about one name. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DsecError, type FileCallOptions, pathBytes, type Sandbox } from '#sdk/mod.ts';
import { type FilesStand, inside, startFilesStand } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';

let stand: FilesStand;
let box: Sandbox;

beforeAll(async () => {
  stand = await startFilesStand();
  box = stand.box;
});
afterAll(() => stand?.close());

describe('names of any bytes', () => {
  const names: [string, Uint8Array][] = [
    ['a line break', Buffer.from('two\nlines')],
    ['blanks, quotes, a backslash', Buffer.from(` '"\\ `)],
    ['not UTF-8', Buffer.from([0xff, 0xfe, 0x41])],
    ['half a character', Buffer.from([0x41, 0xe2, 0x82])],
    ['an encoded surrogate', Buffer.from([0xed, 0xb2, 0x80])],
    ['every byte but two', Uint8Array.from({ length: 254 }, (_, i) => i + 1).filter((byte) => byte !== 0x2f)],
    ['255 bytes', Buffer.alloc(255, 'n')],
    ['an option', Buffer.from('-rf')],
    ['what looks like a deletion mark', Buffer.from('.wh..wh..opq')],
    ['emoji', Buffer.from('\u{1f642}')],
  ];
  test.each(names)('%s: written, listed, read, moved, removed', async (_, name) => {
    const path = Buffer.concat([Buffer.from('/w/names/'), name]);
    await box.files.write(path, 'content', { parents: true });
    const [listed] = await box.files.list('/w/names');
    expect(Buffer.from(pathBytes(listed?.name ?? '')).equals(name)).toBe(true);
    expect(await box.files.readText(`/w/names/${listed?.name}`)).toBe('content');
    expect(await inside(box, `cd /w/names; for f in * .[!.]*; do [ -e "$f" ] || [ -e "./$f" ] && cat "./$f"; done 2>/dev/null`)).toBe('content');
    await box.files.move(path, '/w/moved');
    await box.files.move('/w/moved', path);
    expect(await box.files.remove(path)).toBe(1);
    expect(await box.files.list('/w/names')).toEqual([]);
  });

  test('a lone surrogate that stands for no byte is refused before anything happens', async () => {
    expect((await refusal(box.files.write('/w/\ud800', 'x'))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.stat('/w/a\0b'))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.stat('relative'))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.stat(Buffer.from('relative')))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.stat(`/${'x/'.repeat(3_000)}`))).code).toBe('INVALID_ARGUMENT');
  });
});

describe('what is told of a file', () => {
  test('kind, size, owner, links, time to the nanosecond, space', async () => {
    await inside(
      box,
      'mkdir -p /w/kinds; cd /w/kinds; echo hello > f; ln f g; ln -s f l; mkdir d; busybox mkfifo p; busybox truncate -s 1M s; chmod 640 f; touch -d "2001-02-03 04:05:06" f',
    );
    const kinds = Object.fromEntries((await box.files.list('/w/kinds')).map((entry) => [entry.name, entry]));
    expect(Object.fromEntries(Object.entries(kinds).map(([name, { type }]) => [name, type]))).toEqual({
      d: 'directory',
      f: 'file',
      g: 'file',
      l: 'symlink',
      p: 'fifo',
      s: 'file',
    });
    expect(kinds['f']).toMatchObject({
      size: 6,
      mode: 0o640,
      linkCount: 2,
      target: null,
      modifiedAt: new Date('2001-02-03T04:05:06Z'),
      modifiedNs: 981_173_106_000_000_000n,
    });
    expect(kinds['l']).toMatchObject({ target: 'f' });
    expect([kinds['s']?.size, kinds['s']?.storedBytes]).toEqual([1_048_576, 0]);
    expect(await box.files.stat('/w/kinds/l')).toMatchObject({ type: 'file', size: 6 });
    expect(await box.files.stat('/w/kinds/l', { follow: false })).toMatchObject({ type: 'symlink', target: 'f' });
    expect([await box.files.exists('/w/kinds/f'), await box.files.exists('/w/kinds/nothing'), await box.files.exists('/w/kinds/f/below')]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('a link is the sandbox’s own: absolute ones lead to its files, not to this machine’s', async () => {
    await inside(box, 'ln -s /etc/hostname /w/abs; ln -s ../../../../../../../etc/hostname /w/up');
    const own = (await box.exec(['hostname'])).stdout;
    expect([await box.files.readText('/w/abs'), await box.files.readText('/w/up')]).toEqual([own, own]);
    expect(await box.files.readText('/../../../etc/hostname')).toBe(own);
  });

  test('a directory of 20,000 entries comes whole, piece by piece', async () => {
    await inside(box, 'mkdir /w/many; cd /w/many; seq 1 20000 | busybox xargs touch');
    let count = 0;
    for await (const entry of box.files.entries('/w/many')) count += entry.type === 'file' ? 1 : 0;
    expect(count).toBe(20_000);
    expect(await box.files.remove('/w/many', { recursive: true })).toBe(20_001);
  });
});

describe('making, moving, removing', () => {
  test('directories with those above them; what is there already', async () => {
    expect(await box.files.mkdir('/w/a/b/c', { parents: true, mode: 0o2711 })).toMatchObject({ type: 'directory', mode: 0o2711 });
    expect(await box.files.mkdir('/w/a/b/c', { parents: true })).toMatchObject({ mode: 0o2711 });
    expect((await refusal(box.files.mkdir('/w/a/b/c'))).code).toBe('FILE_EXISTS');
    await box.files.write('/w/a/file', 'x');
    expect((await refusal(box.files.mkdir('/w/a/file', { parents: true }))).code).toBe('FILE_EXISTS');
    expect((await refusal(box.files.mkdir('/w/a/file/d', { parents: true }))).code).toBe('NOT_A_DIRECTORY');
  });

  test('a name that only a directory can have; nothing asked of what is not there', async () => {
    expect((await refusal(box.files.write('/w/new/', 'x'))).code).toBe('IS_A_DIRECTORY');
    expect((await refusal(box.files.write('/', 'x'))).code).toBe('IS_A_DIRECTORY');
    expect((await refusal(box.files.read('/etc/passwd/'))).code).toBe('NOT_A_DIRECTORY');
    expect((await refusal(box.files.read('/w/nothing', { limit: 0 }))).code).toBe('FILE_NOT_FOUND');
    expect(await box.files.read('/etc/passwd', { limit: 0 })).toHaveLength(0);
  });

  test('a move replaces, or does not when told so', async () => {
    await box.files.write('/w/from', 'new');
    await box.files.write('/w/to', 'old');
    expect((await refusal(box.files.move('/w/from', '/w/to', { replace: false }))).code).toBe('FILE_EXISTS');
    await box.files.move('/w/from', '/w/to');
    expect(await box.files.readText('/w/to')).toBe('new');
    expect(await refusal(box.files.move('/w/from', '/w/to'))).toMatchObject({ code: 'FILE_NOT_FOUND', details: { path: '/w/from' } });
    expect(await refusal(box.files.move('/w/to', '/w/no/where'))).toMatchObject({ code: 'FILE_NOT_FOUND', details: { path: '/w/no/where' } });
    expect((await refusal(box.files.move('/w/to', '/dev/shm/to'))).code).toBe('CROSSES_FILE_SYSTEMS');
    expect((await refusal(box.files.move('/w', '/w/a/w'))).code).toBe('INVALID_ARGUMENT');
  });

  test('a removal takes links, not what they lead to, and does not cross into the rest', async () => {
    await inside(
      box,
      'mkdir -p /w/tree/sub /w/outside; echo keep > /w/outside/file; ln -s /w/outside /w/tree/link; ln -s ../outside /w/tree/sub/link; chmod 0 /w/tree/sub',
    );
    expect((await refusal(box.files.remove('/w/tree'))).code).toBe('DIRECTORY_NOT_EMPTY');
    expect(await box.files.remove('/w/tree', { recursive: true })).toBe(4);
    expect(await inside(box, 'cat /w/outside/file; ls /w/tree 2>&1 || true')).toMatch(/^keep\n.*No such file/);
    expect((await refusal(box.files.remove('/w/tree'))).code).toBe('FILE_NOT_FOUND');
    expect((await refusal(box.files.remove('/'))).code).toBe('FILE_BUSY');
    expect((await refusal(box.files.remove('/w/..', { recursive: true }))).code).toBe('FILE_BUSY');
  });

  test('a tree that is deeper than a path is long, and than descriptors last', async () => {
    await inside(
      box,
      `P=$(busybox yes d/ | head -1000 | tr -d '\\n'); for i in 0 1 2 3 4; do mkdir -p /w/deep$i/$P; done; for i in 3 2 1 0; do busybox mv /w/deep$((i+1)) /w/deep$i/$P; done; busybox mv /w/deep0 /w/deep`,
    );
    expect(await box.files.remove('/w/deep', { recursive: true })).toBeGreaterThanOrEqual(5_001);
    expect(await box.files.exists('/w/deep')).toBe(false);
  });
});

describe('users', () => {
  const agent: FileCallOptions = { user: 'agent' };

  test('a user may what a command of that user may', async () => {
    await inside(
      box,
      'mkdir -p /w/open /w/closed; chmod 777 /w/open; chmod 700 /w/closed; echo secret > /w/closed/s; echo root > /w/open/root; chmod 644 /w/open/root',
    );
    expect(await box.files.write('/w/open/mine', 'x', agent)).toMatchObject({ uid: 1_000, gid: 1_000 });
    expect(await box.files.readText('/w/open/root', agent)).toBe('root\n');
    const denied = [
      () => box.files.read('/w/closed/s', agent),
      () => box.files.list('/w/closed', agent),
      () => box.files.write('/w/closed/s', 'x', agent),
      () => box.files.write('/w/open/root', 'x', agent), // its owner could not be kept
      () => box.files.mkdir('/w/closed/d', agent),
      () => box.files.remove('/w/closed/s', agent),
      () => box.files.write('/proc/sys/kernel/hostname', 'x'),
    ];
    for (const call of denied) expect((await refusal(call())).code).toBe('PERMISSION_DENIED');
    expect(await box.files.readText('/w/open/root')).toBe('root\n');
  });

  test('a user that is not there; ids without a name', async () => {
    expect((await refusal(box.files.stat('/w', { user: 'nobody-here' }))).code).toBe('USER_NOT_FOUND');
    expect(await box.files.write('/w/open/numbers', 'x', { user: '1234:5678' })).toMatchObject({ uid: 1_234, gid: 5_678 });
    expect((await refusal(box.files.stat('/w', { user: '99999999' }))).code).toBe('USER_NOT_FOUND');
  });

  test('no process to be had is a refusal of its own', async () => {
    await using small = await stand.dsec.runContainer({ image: 'small', pidsLimit: 8 });
    await small.runShell('while sleep 0.01; do sleep 60 & done', { timeoutMs: 2_000 });
    await small.start('i=0; while [ $i -lt 20 ]; do sleep 60 & i=$((i+1)); done; wait');
    await small.runShell('true', { timeoutMs: 5_000 }).catch(() => undefined);
    const outcome = await small.files.stat('/w').then(
      () => 'answered',
      (error: DsecError) => error.code,
    );
    expect(['answered', 'PIDS_LIMIT']).toContain(outcome);
  });
});
