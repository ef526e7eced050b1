/** Content of files: bytes stay bytes, files without a size are read, nothing is waited for, a full disk loses nothing. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forgeTar } from '#runtime/images/testing/forge-tar.ts';
import type { Sandbox } from '#sdk/mod.ts';
import { type FilesStand, inside, startFilesStand } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';

let stand: FilesStand;
let box: Sandbox;

beforeAll(async () => {
  stand = await startFilesStand({ memoryLimitMb: 128 });
  box = stand.box;
});
afterAll(() => stand?.close());

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const sumInside = async (path: string): Promise<string> => (await inside(box, `sha256sum ${path}`)).split(' ')[0] ?? '';

describe('bytes', () => {
  const contents: [string, Uint8Array][] = [
    ['all byte values', Uint8Array.from({ length: 256 }, (_, i) => i)],
    ['nothing', new Uint8Array(0)],
    ['line ends and a byte order mark', Buffer.from('\r\n\u{feff}x', 'utf8')],
    ['one chunk exactly', randomBytes(262_144)],
    ['one byte more than a chunk', randomBytes(262_145)],
    ['64 MiB', randomBytes(64 * 1024 * 1024)],
  ];
  test.each(contents)('%s: written, seen inside and read back unchanged', async (_, content) => {
    const info = await box.files.write('/w/content', content);
    expect(info).toMatchObject({ type: 'file', size: content.byteLength, mode: 0o644, uid: 0, gid: 0 });
    expect(await sumInside('/w/content')).toBe(sha256(content));
    expect(sha256(await box.files.read('/w/content'))).toBe(sha256(content));
    const hash = createHash('sha256');
    for await (const chunk of await box.files.stream('/w/content')) hash.update(chunk);
    expect(hash.digest('hex')).toBe(sha256(content));
  });

  test('parts, text and streams', async () => {
    await box.files.write('/w/text', 'Grüße \u{1f642} end');
    expect(await box.files.readText('/w/text')).toBe('Grüße \u{1f642} end');
    expect(Buffer.from(await box.files.read('/w/text', { offset: 2, limit: 2 })).toString('latin1')).toBe('\u{c3}\u{bc}');
    expect((await box.files.read('/w/text', { offset: 1_000 })).byteLength).toBe(0);
    expect((await box.files.read('/w/text', { limit: 0 })).byteLength).toBe(0);
    await box.files.write('/w/latin', Buffer.from([0xff, 0x41]));
    expect(await box.files.readText('/w/latin')).toBe('\u{fffd}A');
    async function* pieces() {
      for (let i = 0; i < 1_000; i += 1) yield Buffer.alloc(i, i % 256);
    }
    await box.files.write('/w/pieces', pieces());
    expect(await sumInside('/w/pieces')).toBe(sha256(Buffer.concat(await collect(pieces()))));
  });

  test('append adds to the end, and makes what is missing', async () => {
    await box.files.append('/w/new/log', 'one\n', { parents: true });
    expect(await box.files.append('/w/new/log', 'two\n')).toMatchObject({ size: 8 });
    await Promise.all(Array.from({ length: 20 }, (_, i) => box.files.append('/w/new/log', `line ${i}\n`)));
    const lines = (await box.files.readText('/w/new/log')).split('\n');
    expect(lines.slice(0, 2)).toEqual(['one', 'two']);
    expect(new Set(lines.slice(2, -1))).toEqual(new Set(Array.from({ length: 20 }, (_, i) => `line ${i}`)));
  });
});

describe('files of the kernel, and those that are none', () => {
  test.each(['/proc/version', '/proc/cpuinfo', '/etc/resolv.conf', '/proc/self/mountinfo', '/proc/sys/kernel/hostname'])(
    '%s reads as cat does',
    async (path) => {
      const cat = await inside(box, `cat ${path}`);
      expect((await box.files.readText(path)).length > 0).toBe(true);
      if (path !== '/proc/cpuinfo') expect(await box.files.readText(path)).toBe(cat);
    },
  );

  test('a character device gives as much as is asked for, and nothing without a limit', async () => {
    const zeros = await box.files.read('/dev/zero', { limit: 1024 * 1024 });
    expect([zeros.byteLength, zeros.every((byte) => byte === 0)]).toEqual([1024 * 1024, true]);
    expect((await box.files.read('/dev/urandom', { limit: 100 })).byteLength).toBe(100);
    expect((await refusal(box.files.read('/dev/zero'))).code).toBe('NOT_REGULAR');
  });

  test('a FIFO, a socket and a terminal are refused at once, for reading and for writing', async () => {
    await inside(box, 'busybox mkfifo /w/fifo');
    for (const path of ['/w/fifo', '/dev/ptmx', '/dev/tty']) {
      expect((await refusal(box.files.read(path))).code).toBe('NOT_REGULAR');
      expect((await refusal(box.files.write(path, 'x'))).code).toBe('NOT_REGULAR');
      expect((await refusal(box.files.append(path, 'x'))).code).toBe('NOT_REGULAR');
    }
    const waiting = await box.start('echo told > /w/fifo; echo went on');
    expect((await refusal(box.files.stream('/w/fifo'))).code).toBe('NOT_REGULAR');
    expect((await waiting.view()).state).toBe('running'); // its writer was not woken
    await waiting.kill();
  });

  test('a file that grows for ever ends at the limit', async () => {
    const grower = await box.start('while :; do dd if=/dev/zero bs=64k count=16 2>/dev/null >> /w/grows; done');
    await box.runShell('while [ ! -s /w/grows ]; do :; done');
    expect((await box.files.read('/w/grows', { limit: 3_000_000 })).byteLength).toBeLessThanOrEqual(3_000_000);
    await grower.kill();
    await box.files.remove('/w/grows');
  });
});

describe('replacing', () => {
  test('the old mode and owner stay, or are what the caller says', async () => {
    await inside(box, 'echo old > /w/kept; chmod 4750 /w/kept; busybox chown 1000:1000 /w/kept; chmod 4750 /w/kept');
    expect(await box.files.write('/w/kept', 'new')).toMatchObject({ mode: 0o4750, uid: 1_000, gid: 1_000 });
    expect(await box.files.write('/w/kept', 'newer', { mode: 0o600 })).toMatchObject({ mode: 0o600, uid: 1_000 });
    expect(await box.files.write('/w/fresh', 'x', { mode: 0o7777 })).toMatchObject({ mode: 0o7777 });
  });

  test('a link is followed to the file, however it leads there; its other names keep the old content', async () => {
    await inside(box, 'mkdir -p /w/far; echo old > /w/far/target; ln /w/far/target /w/other; ln -s far/target /w/link1; ln -s /w/link1 /w/link2');
    await box.files.write('/w/link2', 'new');
    expect(await inside(box, 'cat /w/far/target /w/other; test -L /w/link2 && test -L /w/link1 && echo links')).toBe('newold\nlinks\n');
    await inside(box, 'ln -s not/there /w/dangling; ln -s loop /w/loop');
    expect((await refusal(box.files.write('/w/dangling', 'x'))).code).toBe('FILE_NOT_FOUND');
    expect((await refusal(box.files.write('/w/loop', 'x'))).code).toBe('TOO_MANY_LINKS');
    expect((await refusal(box.files.read('/w/loop'))).code).toBe('TOO_MANY_LINKS');
  });

  test('a file that is a mount point is overwritten where it is', async () => {
    await box.files.append('/etc/hosts', '10.1.2.3 elsewhere\n');
    const hosts = await box.files.readText('/etc/hosts');
    await box.files.write('/etc/hosts', `${hosts}10.1.2.4 further\n`);
    await box.files.write('/etc/hosts', `${hosts}10.1.2.5 short\n`);
    expect(await inside(box, 'cat /etc/hosts')).toBe(`${hosts}10.1.2.5 short\n`);
  });

  test('whoever reads meanwhile sees one whole version; of many writers one wins', async () => {
    const versions = Array.from({ length: 8 }, (_, i) => Buffer.alloc(600_000, 65 + i));
    await box.files.write('/w/race', versions[0] as Buffer);
    const known = new Set(versions.map((version) => sha256(version)));
    const reads = Array.from({ length: 8 }, async () => sha256(await box.files.read('/w/race')));
    await Promise.all([...versions.map((version) => box.files.write('/w/race', version)), ...reads]);
    for (const seen of [...(await Promise.all(reads)), await sumInside('/w/race')]) expect(known.has(seen)).toBe(true);
    expect(await inside(box, 'ls -A /w | grep -c "^.dsec-" || true')).toBe('0\n');
  });
});

test('a file that is longer than a whole read may be is refused before it is carried', async () => {
  await inside(box, 'dd if=/dev/null of=/w/long bs=1M seek=3072 2>/dev/null');
  const error = await refusal(box.files.read('/w/long'));
  expect(error).toMatchObject({ code: 'FILE_TOO_LARGE', outcome: 'not_applied' });
  expect(Buffer.from(await box.files.read('/w/long', { offset: 3 * 2 ** 30 - 5, limit: 100 }))).toEqual(Buffer.alloc(5));
  await box.files.remove('/w/long');
});

describe('a full file system', () => {
  test('the write says so, the old file is whole, and all is well when there is room again', async () => {
    await inside(box, 'echo -n OLD > /dev/shm/cfg; dd if=/dev/zero of=/dev/shm/fill bs=64k 2>/dev/null || true');
    expect((await refusal(box.files.write('/dev/shm/cfg', randomBytes(100_000)))).code).toBe('NO_SPACE');
    expect((await refusal(box.files.write('/dev/shm/cfg', randomBytes(5_000_000)))).code).toBe('NO_SPACE');
    expect((await refusal(box.files.append('/dev/shm/cfg', randomBytes(5_000_000)))).code).toBe('NO_SPACE');
    await inside(box, 'dd if=/dev/shm/cfg of=/dev/shm/cut bs=3 count=1 2>/dev/null || true');
    expect((await box.files.readText('/dev/shm/cfg', { limit: 3 })).slice(0, 3)).toBe('OLD');
    expect(await inside(box, 'echo hi; ls -A /dev/shm | sort | tr "\\n" " "')).toMatch(/^hi\ncfg (cut )?fill $/);
    await inside(box, 'rm /dev/shm/fill');
    await box.files.write('/dev/shm/cfg', randomBytes(100_000));
    expect((await box.files.stat('/dev/shm/cfg')).size).toBe(100_000);
    await inside(box, 'rm /dev/shm/*');
  });

  test('an unpacked tree stops with the entry that found no room, and says what is there already', async () => {
    await inside(box, 'mkdir /dev/shm/there; head -c 65536 /dev/zero > /dev/shm/room; dd if=/dev/zero of=/dev/shm/fill bs=64k 2>/dev/null || true');
    await inside(box, 'rm /dev/shm/room');
    const large = { name: 'large', body: 'x'.repeat(300_000) };
    const some = forgeTar([{ name: 'small', body: 'abc' }, { name: 'empty' }, large, { name: 'never' }]);
    const error = await refusal(box.files.uploadTree(once(some), '/dev/shm/tree'));
    expect(error).toMatchObject({ code: 'NO_SPACE', outcome: 'unknown', details: { path: 'large', done: { entries: 2, bytes: 3 } } });
    expect(error.message).toContain('2 entries with 3 bytes were done before it and stay so');
    expect(await inside(box, 'ls -A /dev/shm/tree; cat /dev/shm/tree/small')).toBe('empty\nsmall\nabc');
    const nothing = await refusal(box.files.uploadTree(once(forgeTar([large])), '/dev/shm/there'));
    expect(nothing).toMatchObject({ code: 'NO_SPACE', outcome: 'not_applied', details: { path: 'large' } });
    expect(await inside(box, 'ls -A /dev/shm/there')).toBe('');
    await inside(box, 'rm -r /dev/shm/*');
  });

  test('a removal that comes to what it may not remove says how much is gone', async () => {
    await inside(box, 'mkdir -p /tmp/t/kept && touch /tmp/t/kept/f && chown -R 1000 /tmp/t && chown 0 /tmp/t/kept && touch /tmp/t/a && chown 1000 /tmp/t/a');
    const error = await refusal(box.files.remove('/tmp/t', { recursive: true, user: 'agent' }));
    expect(error).toMatchObject({ code: 'PERMISSION_DENIED', details: { path: '/tmp/t/kept/f' } });
    const gone = (await inside(box, 'ls /tmp/t')) === 'kept\n';
    expect(error).toMatchObject(gone ? { outcome: 'unknown', details: { done: { entries: 1 } } } : { outcome: 'not_applied' });
    await box.files.remove('/tmp/t', { recursive: true });
  });
});

const collect = async (source: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> => {
  const all: Uint8Array[] = [];
  for await (const piece of source) all.push(piece);
  return all;
};

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
