/** Trees in and out: everything that a tree has arrives, what does not is told, and nothing leads outside. */
import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ForgedEntry, forgeTar } from '#runtime/images/testing/forge-tar.ts';
import type { Sandbox } from '#sdk/mod.ts';
import { type FilesStand, inside, MANIFEST, startFilesStand } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';

let stand: FilesStand;
let box: Sandbox;
let dir: string;

beforeAll(async () => {
  stand = await startFilesStand({ memoryLimitMb: 256 });
  box = stand.box;
});
afterAll(() => stand?.close());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-files-'));
  return () => rmSync(dir, { recursive: true, force: true });
});

const here = (script: string, cwd = dir): string => execFileSync('bash', ['-euc', script], { cwd, encoding: 'utf8' });
const archive = (entries: readonly ForgedEntry[]) => once(forgeTar(entries));
async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
const bytesOf = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const all: Uint8Array[] = [];
  for await (const chunk of source) all.push(chunk);
  return Buffer.concat(all);
};

/** One of everything that copies are known to lose. */
const ODD_TREE = String.raw`
  mkdir m; cd m; echo hi>a; ln a b; ln -s a lnk; ln -s missing dangling; ln -s loop loop; ln -s /etc/hostname abs; mkdir emptydir stk; chmod 1777 stk
  cp /bin/true su; chown 1234:5678 su; chmod 4755 su; cp /bin/true capt; setcap cap_net_raw+ep capt; echo z>zero; chmod 0000 zero; mkdir closed; echo c>closed/c; chmod 0000 closed
  echo x > "$(printf 'line\nbreak \377')"; mkdir -p "deep/$(printf 'n%.0s' $(seq 1 200))/$(printf 'm%.0s' $(seq 1 200))"; (cd deep/n*/m* && echo deep > leaf)
  echo x > .wh.a; echo x > .wh..wh..opq; ln lnk lnk2
  touch -d '2001-02-03T04:05:06.123456789Z' a; touch -d '1965-06-07T08:09:10.5Z' zero; touch -h -d '2002-02-02T02:02:02.5Z' lnk; touch -d '2003-03-03T03:03:03.000000001Z' deep closed
`;

describe('a tree goes in and comes back', () => {
  test('links, modes, set-id bits, capabilities, attributes, owners, odd names, times to the nanosecond', async () => {
    here(`${ODD_TREE}
      cd ..; mkfifo m/ff; python3 -c "import os; os.setxattr('m/a', b'user.k=%', bytes(range(256))); import socket; socket.socket(socket.AF_UNIX).bind('m/sock')"`);
    const up = await box.files.uploadTree(join(dir, 'm'), '/w/odd');
    expect([...up.omitted].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'ff', what: 'fifo' },
      { path: 'sock', what: 'socket' },
    ]);
    here('rm m/ff m/sock; touch -d "2003-03-03T03:03:03.000000001Z" m', dir);
    const manifest = here(MANIFEST, join(dir, 'm'));
    expect(await inside(box, `cd /w/odd; ${MANIFEST}`)).toBe(manifest);
    expect(await inside(box, 'cd /w/odd; echo more >> a; cat b')).toBe('hi\nmore\n');
    await inside(box, "cd /w/odd; echo hi > a; touch -d '2001-02-03 04:05:06' a");
    await box.files.uploadTree(join(dir, 'm'), '/w/odd2');
    const down = await box.files.downloadTree('/w/odd2', join(dir, 'back'), { owners: true });
    expect(down).toMatchObject({ omittedCount: 0, omitted: [] });
    expect(here(MANIFEST, join(dir, 'back'))).toBe(manifest);
    expect(here("getcap capt; python3 -c \"import os; print(os.getxattr('a', b'user.k=%') == bytes(range(256)))\"", join(dir, 'back'))).toMatch(
      /cap_net_raw[+=]ep\nTrue\n$/,
    );
  });

  test('what is found inside comes out: nothing is followed, what cannot be carried is told', async () => {
    await inside(
      box,
      'mkdir /w/t; cd /w/t; ln -s missing dangling; ln -s loop loop; ln -s /etc/hostname abs; ln -s ../.. up; mkdir sub; ln -s .. sub/back; busybox mkfifo ff; busybox mknod null c 1 3 2>/dev/null; true',
    );
    const down = await box.files.downloadTree('/w/t', join(dir, 't'));
    expect(here('find . -mindepth 1 -printf "%P %y %l\\n" | sort', join(dir, 't'))).toBe(
      'abs l /etc/hostname\ndangling l missing\nloop l loop\nsub d \nsub/back l ..\nup l ../..\n',
    );
    expect(down.omitted).toContainEqual({ path: 'ff', what: 'fifo' });
    expect(await box.files.readText('/w/t/abs')).toBe(await inside(box, 'cat /etc/hostname'));
    expect((await refusal(box.files.read('/w/t/loop'))).code).toBe('TOO_MANY_LINKS');
  });

  test('the whole root comes out without the kernel’s own files', async () => {
    const report = await box.files.downloadTree('/', join(dir, 'root'));
    expect(existsSync(join(dir, 'root/bin/busybox'))).toBe(true);
    expect(
      report.omitted
        .filter(({ what }) => what === 'mount')
        .map(({ path }) => path)
        .sort(),
    ).toEqual(['dev/pts', 'proc', 'sys']);
    expect(report.omitted.filter(({ what }) => what === 'device').length).toBeGreaterThan(3);
  });

  test('holes stay holes, in trees and in single files, in both directions', async () => {
    here(
      'mkdir m; truncate -s 2G m/sparse; printf data | dd of=m/sparse bs=1 seek=1500000000 conv=notrunc status=none; truncate -s 48M m/small; echo end >> m/small; truncate -s 1M m/empty; dd if=/dev/urandom of=m/ends bs=64k count=1 status=none; truncate -s 1M m/ends',
    );
    await box.files.uploadTree(join(dir, 'm'), '/w/holes');
    await box.files.upload(join(dir, 'm/small'), '/w/holes/single');
    expect([(await box.files.stat('/w/holes/sparse')).size, (await box.files.stat('/w/holes/single')).size]).toEqual([2 ** 31, 48 * 2 ** 20 + 4]);
    for (const entry of await box.files.list('/w/holes')) expect(entry.storedBytes).toBeLessThan(200_000);
    expect(Buffer.from(await box.files.read('/w/holes/sparse', { offset: 1_500_000_000 - 2, limit: 8 })).toString('latin1')).toBe('\0\0data\0\0');
    await box.files.downloadTree('/w/holes', join(dir, 'back'));
    await box.files.download('/w/holes/single', join(dir, 'back/alone'));
    here(
      'cd back; dd if=sparse bs=1 skip=1500000000 count=4 status=none | grep -q data; test $(stat -c %s sparse) = 2147483648; cmp single ../m/small; cmp alone ../m/small; cmp ends ../m/ends; cmp empty ../m/empty',
    );
    for (const name of ['sparse', 'single', 'alone', 'empty', 'ends']) expect(statSync(join(dir, 'back', name)).blocks).toBeLessThan(400);
  });

  test('3,000 files, some of many names, in a tree of directories', async () => {
    for (let d = 1; d <= 30; d += 1) {
      mkdirSync(join(dir, `m/d${d}/e`), { recursive: true });
      for (let f = 1; f <= 50; f += 1) {
        writeFileSync(join(dir, `m/d${d}/f${f}`), `${d}-${f}\n`);
        linkSync(join(dir, `m/d${d}/f${f}`), join(dir, `m/d${d}/e/g${f}`));
      }
    }
    const up = await box.files.uploadTree(join(dir, 'm'), '/w/many');
    expect(up).toMatchObject({ entries: 3_061, omittedCount: 0 });
    expect(await inside(box, 'cd /w/many; find . -type f -links 2 | wc -l; cat d7/e/g9')).toBe('3000\n7-9\n');
    const down = await box.files.downloadTree('/w/many', join(dir, 'back'));
    expect(down).toMatchObject({ entries: 3_061, omittedCount: 0 });
    expect(here(MANIFEST, join(dir, 'back'))).toBe(here(MANIFEST, join(dir, 'm')));
  });

  test('a tree deeper than a path is long', async () => {
    await inside(
      box,
      `P=$(busybox yes abcde/ | head -600 | tr -d '\\n'); mkdir -p /w/down/x; mkdir -p /w/a/$P /w/b/$P; echo leaf > /w/b/$P/leaf; busybox mv /w/b /w/a/$P; busybox mv /w/a /w/down/x`,
    );
    const report = await box.files.tar('/w/down');
    const bytes = await bytesOf(report);
    expect(report.end).toMatchObject({ omittedCount: 0, entries: 1_205 });
    await box.files.uploadTree(once(bytes), '/w/down2');
    expect((await box.files.tar('/w/down2').then(bytesOf)).equals(bytes)).toBe(true);
    await Promise.all(['/w/down', '/w/down2'].map((path) => box.files.remove(path, { recursive: true })));
  });
});

describe('archives as others write them', () => {
  const formats = ['--format=v7', '--format=oldgnu', '--format=gnu', '--format=ustar', '--format=posix'];
  const sparse = [
    '--format=oldgnu --sparse',
    '--format=gnu --sparse',
    '--format=posix --sparse --sparse-version=0.0',
    '--format=posix --sparse --sparse-version=0.1',
    '--format=posix --sparse',
  ];
  test.each([...formats, ...sparse])('GNU tar %s', async (options) => {
    here(`mkdir -p m/sub; cd m; echo one > one; ln one two; ln -s one three; printf 'x%.0s' $(seq 1 5000) > sub/long; truncate -s 3M hole
      for i in $(seq 0 60); do printf "piece $i" | dd of=hole bs=1 seek=$((i*40000)) conv=notrunc status=none; done; touch -d @1000000000 one sub/long hole sub`);
    const tar = execFileSync('tar', ['-C', join(dir, 'm'), ...options.split(' '), '-cf', '-', '.'], { maxBuffer: 2 ** 26 });
    await box.files.uploadTree(once(tar), '/w/format');
    expect(await inside(box, 'cd /w/format; cat one two three; wc -c < sub/long; busybox stat -c "%Y %h" one')).toBe('one\none\none\n5000\n1000000000 2\n');
    expect(Buffer.from(await box.files.read('/w/format/hole')).equals(readFileSync(join(dir, 'm/hole')))).toBe(true);
    await box.files.remove('/w/format', { recursive: true });
  });

  test('ours is read by GNU tar and by Python', async () => {
    await inside(box, 'mkdir -p /w/ours/d; cd /w/ours; echo hello > f; ln f g; ln -s f l; busybox truncate -s 5M hole; echo end >> hole');
    writeFileSync(join(dir, 'ours.tar'), await bytesOf(await box.files.tar('/w/ours')));
    expect(here('tar -tf ours.tar | sort | tr "\\n" " "; mkdir x; tar -xf ours.tar -C x; cat x/g; tail -c 4 x/hole; stat -c %s x/hole')).toBe(
      './ d/ f g hole l hello\nend\n5242884\n',
    );
    expect(here(`python3 -c "import tarfile; print([(m.name, m.type, m.size) for m in sorted(tarfile.open('ours.tar'), key=lambda m: m.name)])"`)).toContain(
      "('hole', b'0', 5242884)",
    );
  });

  test('a file alone is an archive of one; a link alone stays a link', async () => {
    await inside(box, 'echo alone > /w/alone; ln -s alone /w/alone-link');
    writeFileSync(join(dir, 'one.tar'), await bytesOf(await box.files.tar('/w/alone')));
    writeFileSync(join(dir, 'link.tar'), await bytesOf(await box.files.tar('/w/alone-link')));
    expect(here('tar -tvf one.tar; tar -tvf link.tar')).toMatch(/^-rw.* alone\nl.* alone-link -> alone\n$/);
  });
});

describe('what would lead outside', () => {
  const bad: [string, ForgedEntry[], string][] = [
    ['a name that climbs', [{ name: '../evil' }], '../evil'],
    ['a name that climbs from within', [{ name: 'a/../../evil' }], 'a/../../evil'],
    ['a name that only looks as if', [{ name: 'a/../b' }], 'a/../b'],
    ['an absolute name', [{ name: '/w/evil' }], '/w/evil'],
    ['through a link made before', [{ name: 'd', type: 'soft', link: '/w/outside' }, { name: 'd/evil' }], 'd/evil'],
    ['through a relative link made before', [{ name: 'd', type: 'soft', link: '../outside' }, { name: 'd/evil' }], 'd/evil'],
    ['through a link that stays inside', [{ name: 'real', type: 'directory' }, { name: 'd', type: 'soft', link: 'real' }, { name: 'd/evil' }], 'd/evil'],
    [
      'a directory over a link',
      [
        { name: 'd', type: 'soft', link: '/w/outside' },
        { name: 'd', type: 'directory' },
      ],
      'd',
    ],
    ['a hard link to what lies outside', [{ name: 'h', type: 'hard', link: '../secret' }], 'h'],
    ['a hard link by an absolute name', [{ name: 'h', type: 'hard', link: '/w/secret' }], 'h'],
    [
      'a hard link through a link',
      [
        { name: 'd', type: 'soft', link: '/w' },
        { name: 'h', type: 'hard', link: 'd/secret' },
      ],
      'h',
    ],
    ['a link to itself', [{ name: 'd', type: 'soft', link: 'd' }, { name: 'd/evil' }], 'd/evil'],
  ];
  test.each(bad)('%s', async (_, entries, named) => {
    await inside(box, 'rm -rf /w/dest /w/outside; mkdir -p /w/dest /w/outside; echo secret > /w/secret');
    const before = here('ls / /w 2>/dev/null || true');
    const error = await refusal(box.files.uploadTree(archive([{ name: 'ok.txt', body: 'ok' }, ...entries, { name: 'after' }]), '/w/dest'));
    expect(['UNSAFE_ENTRY', 'NOT_A_DIRECTORY']).toContain(error.code);
    expect(error.details['entry'] ?? error.details['path']).toBe(named);
    expect(error.message).toContain(JSON.stringify(named));
    expect(
      await inside(
        box,
        'cat /w/dest/ok.txt; ls -A /w/outside; test -e /w/evil || test -e /evil || echo none; cat /w/secret; test -e /w/dest/after || echo stopped',
      ),
    ).toBe('oknone\nsecret\nstopped\n');
    expect(here('ls / /w 2>/dev/null || true')).toBe(before);
  });

  test('a link that a hard link names is linked itself, and never written through', async () => {
    await inside(box, 'rm -rf /w/dest /w/outside; mkdir -p /w/dest /w/outside; echo safe > /w/outside/file');
    await box.files.uploadTree(
      archive([
        { name: 's', type: 'soft', link: '/w/outside/file' },
        { name: 'h', type: 'hard', link: 's' },
        { name: 'h', body: 'new' },
      ]),
      '/w/dest',
    );
    expect(await inside(box, 'cat /w/outside/file /w/dest/h; test -L /w/dest/s && echo link')).toBe('safe\nnewlink\n');
  });

  test('the destination itself may be reached through a link: it is the caller’s own name', async () => {
    await inside(box, 'rm -rf /w/real /w/way; mkdir /w/real; ln -s real /w/way');
    await box.files.uploadTree(archive([{ name: 'f', body: 'x' }]), '/w/way');
    expect(await inside(box, 'cat /w/real/f')).toBe('x');
  });
});

describe('what replaces, and what is broken', () => {
  test('files and links replace files and links; never a directory', async () => {
    await inside(box, 'rm -rf /w/dest; mkdir -p /w/dest/dir; cd /w/dest; echo old > f; ln f keeps; ln -s /etc/passwd l; echo old > h');
    await box.files.uploadTree(
      archive([
        { name: 'f', body: 'new' },
        { name: 'l', body: 'file' },
        { name: 'h', type: 'hard', link: 'f' },
        { name: 'keeps', type: 'soft', link: 'f' },
      ]),
      '/w/dest',
    );
    expect(await inside(box, 'cd /w/dest; cat f l h; busybox readlink keeps; busybox stat -c %h f; head -c 4 /etc/passwd')).toBe('newfilenewf\n2\nroot');
    for (const entry of [
      { name: 'dir', body: 'x' },
      { name: 'dir', type: 'soft', link: 'x' },
      { name: 'dir', type: 'hard', link: 'f' },
    ] as const)
      expect(await refusal(box.files.uploadTree(archive([entry]), '/w/dest'))).toMatchObject({ code: 'IS_A_DIRECTORY', details: { path: 'dir' } });
    expect(await inside(box, 'ls -A /w/dest | tr "\\n" " "')).toBe('dir f h keeps l ');
  });

  test('a broken archive is called one, with what came before in place', async () => {
    const whole = forgeTar([
      { name: 'first', body: 'x' },
      { name: 'second', body: 'y'.repeat(2_000) },
    ]);
    const broken: [string, Buffer][] = [
      ['cut in a header', whole.subarray(0, 1_300)],
      ['cut in the content', whole.subarray(0, 2_000)],
      ['cut before its end', whole.subarray(0, whole.byteLength - 1_024)],
      ['empty', Buffer.alloc(0)],
      ['no archive', Buffer.alloc(4_096, 'not a tar archive ')],
      ['something behind its end', Buffer.concat([whole, Buffer.from('more')])],
      ['a second one behind its end', Buffer.concat([whole, whole])],
      ['a wrong sum', Buffer.from(whole.map((byte, i) => (i === 1_025 ? byte + 1 : byte)))],
    ];
    for (const [what, bytes] of broken) {
      const error = await refusal(box.files.uploadTree(once(bytes), '/w/broken'));
      expect([what, error.code]).toEqual([what, 'BAD_ARCHIVE']);
    }
    expect(await inside(box, 'ls -A /w/broken | grep -v first | grep -v second | wc -l')).toBe('0\n');
  });

  test('a user who is not root gets what that user may have, and is told of the rest', async () => {
    here(`mkdir m; cd m; echo x > owned; cp /bin/true su; chown 1234:5678 su; chmod 6755 su; mkdir ro; echo y > ro/in; chmod 555 ro`);
    await inside(box, 'mkdir -p /w/agents; chmod 777 /w/agents');
    const report = await box.files.uploadTree(join(dir, 'm'), '/w/agents/m', { user: 'agent' });
    expect(report.omitted).toContainEqual({ path: 'su', what: 'owner' });
    expect(report.omitted).toContainEqual({ path: 'su', what: 'set-id' });
    expect(await inside(box, 'cd /w/agents/m; busybox stat -c "%n %a %u" su ro ro/in')).toBe('su 755 1000\nro 555 1000\nro/in 644 1000\n');
    await inside(box, 'mkdir /w/agents/m/no; chmod 700 /w/agents/m/no; echo s > /w/agents/m/secret; chmod 600 /w/agents/m/secret');
    const down = await box.files.downloadTree('/w/agents/m', join(dir, 'back'), { user: 'agent' });
    expect([...down.omitted].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'no', what: 'unreadable' },
      { path: 'secret', what: 'unreadable' },
    ]);
  });

  test('without owners everything is the user’s, and no program keeps rights of another', async () => {
    here('mkdir m; cd m; cp /bin/true su; chown 1234:5678 su; chmod 4755 su; echo x > f; chown 1000 f');
    const report = await box.files.uploadTree(join(dir, 'm'), '/w/plain', { owners: false });
    expect(report.omitted).toEqual([{ path: 'su', what: 'set-id' }]);
    expect(await inside(box, 'cd /w/plain; busybox stat -c "%n %a %u:%g" su f')).toBe('su 755 0:0\nf 644 0:0\n');
    await inside(box, 'chmod 4755 /w/plain/su');
    await box.files.downloadTree('/w/plain', join(dir, 'back'));
    expect(statSync(join(dir, 'back/su')).mode & 0o6000).toBe(0);
  });

  test('the caller’s own machine: what is not there, what cannot be written', async () => {
    expect((await refusal(box.files.uploadTree(join(dir, 'nothing'), '/w/n'))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.upload(join(dir, 'nothing'), '/w/n'))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.upload(dir, '/w/n'))).code).toBe('INVALID_ARGUMENT');
    writeFileSync(join(dir, 'file'), 'x');
    expect((await refusal(box.files.downloadTree('/etc', join(dir, 'file')))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.download('/etc/passwd', join(dir, 'no/where')))).code).toBe('INVALID_ARGUMENT');
    expect((await refusal(box.files.downloadTree('/no/such', join(dir, 'd')))).code).toBe('FILE_NOT_FOUND');
    mkdirSync(join(dir, 'one'));
    expect(await box.files.download('/etc/passwd', join(dir, 'one/passwd'))).toMatchObject({ type: 'file' });
    expect(here('ls -A one')).toBe('passwd\n');
  });
});
