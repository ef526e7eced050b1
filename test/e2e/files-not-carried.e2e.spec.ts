/** What a tree loses on its way is said, by entry and kind, in both directions and by both machines. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Omission } from '#bus/op/files.ts';
import { type ForgedEntry, forgeTar } from '#runtime/images/testing/forge-tar.ts';
import type { Sandbox } from '#sdk/mod.ts';
import { type FilesStand, inside, startFilesStand } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';

let stand: FilesStand;
let box: Sandbox;
let dir: string;

beforeAll(async () => {
  stand = await startFilesStand();
  box = stand.box;
});
afterAll(() => stand?.close());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-files-'));
  return () => rmSync(dir, { recursive: true, force: true });
});

const here = (script: string): string => execFileSync('bash', ['-euc', script], { cwd: dir, encoding: 'utf8' });
async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
const byPath = (omitted: readonly Omission[]): Omission[] => [...omitted].sort((a, b) => `${a.path} ${a.what}`.localeCompare(`${b.path} ${b.what}`));
/** `user::rwx, user:1000:r--, group::r--, mask::r--, other::r--`, as the kernel keeps it. */
const SET_ACL = `import os, struct; os.setxattr('m/acl', 'system.posix_acl_access', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in
  [(1, 7, 2**32 - 1), (2, 4, 1000), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 4, 2**32 - 1)]))`;

describe('in', () => {
  const cases: [string, ForgedEntry, Omission['what'][]][] = [
    ['an access control list as text', { name: 'f', records: { 'SCHILY.acl.access': 'user::rw-,user:1000:r--,group::r--,mask::r--,other::r--' } }, ['acl']],
    ['that of a directory', { name: 'd', type: 'directory', records: { 'SCHILY.acl.default': 'user::rwx,group::r-x,other::r-x' } }, ['acl']],
    ['NFSv4’s', { name: 'f', records: { 'SCHILY.acl.ace': 'owner@:rw::allow' } }, ['acl']],
    ['two things of one file', { name: 'f', records: { 'SCHILY.acl.access': 'user::rw-', 'SCHILY.fflags': 'nodump' } }, ['acl', 'flags']],
    ['a label of SELinux', { name: 'f', records: { 'RHT.security.selinux': 'system_u:object_r:etc_t:s0' } }, ['xattr']],
    ['an attribute in libarchive’s form alone', { name: 'f', records: { 'LIBARCHIVE.xattr.user.k': 'dg' } }, ['xattr']],
    ['an attribute that nobody here may set', { name: 'f', xattrs: { 'trusted.k': Buffer.from('v') } }, ['xattr']],
    ['an attribute of a link', { name: 'l', type: 'soft', link: 'f', xattrs: { 'user.k': Buffer.from('v') } }, ['xattr']],
    ['a record that nobody knows', { name: 'f', records: { 'VENDOR.retention': 'forever' } }, ['unknown-record']],
    ['a FIFO', { name: 'p', type: 'fifo' }, ['fifo']],
    ['a character device', { name: 'c', type: 'character' }, ['device']],
    ['a block device', { name: 'b', type: 'block' }, ['device']],
    ['a kind of entry that nobody knows', { name: 'v', type: 'label' }, ['unknown-type']],
    ['remarks, other times, names of owners: nothing that a file here could have', { name: 'f', records: { comment: 'x', atime: '1', uname: 'me' } }, []],
  ];
  test.each(cases)('%s', async (_, entry, what) => {
    const report = await box.files.uploadTree(once(forgeTar([{ name: 'before', body: 'x' }, entry, { name: 'after', body: 'y' }])), '/w/in');
    expect(report).toMatchObject({ omittedCount: what.length, omitted: what.map((kind) => ({ path: entry.name, what: kind })) });
    expect(await inside(box, 'cat /w/in/before /w/in/after; rm -r /w/in')).toBe('xy');
  });

  test('what is said of all entries counts for each, and an entry’s own word comes before it', async () => {
    const report = await box.files.uploadTree(
      once(
        forgeTar([
          { name: 'g', type: 'global', records: { comment: 'of all', uid: '1000', mtime: '1234567890.5', 'SCHILY.acl.access': 'user::rw-' } },
          { name: 'a', body: 'x' },
          { name: 'b', body: 'y', records: { uid: '7', mtime: '' } },
        ]),
      ),
      '/w/global',
    );
    expect(report.omitted).toEqual([
      { path: 'a', what: 'acl' },
      { path: 'b', what: 'acl' },
    ]);
    expect(await inside(box, 'cd /w/global; stat -c "%n %u %Y" a b')).toBe('a 1000 1234567890\nb 7 1500000000\n');
    const names = forgeTar([
      { name: 'g', type: 'global', records: { path: 'everything' } },
      { name: 'a', body: 'x' },
    ]);
    expect((await refusal(box.files.uploadTree(once(names), '/w/global'))).code).toBe('BAD_ARCHIVE');
  });

  test('more of it than is named is counted', async () => {
    const many = Array.from({ length: 1_500 }, (_, n): ForgedEntry => ({ name: `p${n}`, type: 'fifo' }));
    const report = await box.files.uploadTree(once(forgeTar(many)), '/w/many');
    expect([report.entries, report.omittedCount, report.omitted.length]).toEqual([0, 1_500, 1_000]);
  });

  test('a local tree: sockets of any name, and files that change meanwhile; access control lists arrive', async () => {
    here(`mkdir m; echo x > m/acl; python3 -c "${SET_ACL}"`);
    here(
      `python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(b'm/a\\n\\\\\\\\ b:\\xff')"; dd if=/dev/urandom of=m/growing bs=1M count=32 status=none`,
    );
    const writer = spawn('sh', ['-c', 'while :; do echo more; done >> m/growing'], { cwd: dir });
    const report = await box.files.uploadTree(join(dir, 'm'), '/w/local').finally(() => writer.kill('SIGKILL'));
    expect(byPath(report.omitted)).toEqual([
      { path: 'a\n\\ b:\udcff', what: 'socket' },
      { path: 'growing', what: 'changed' },
    ]);
    const back = await box.files.downloadTree('/w/local', join(dir, 'back'), { owners: true });
    expect(back.omittedCount).toBe(0);
    expect(here(`python3 -c "import os; print(os.getxattr('back/acl', 'system.posix_acl_access') == os.getxattr('m/acl', 'system.posix_acl_access'))"`)).toBe(
      'True\n',
    );
  });
});

describe('out', () => {
  test('without owners: set-id and sticky bits and attributes that are not the user’s stay behind and are named', async () => {
    here(`mkdir m m/shared; chmod 3777 m/shared; cp /bin/true m/su; chmod 4755 m/su; ln m/su m/su2; cp /bin/true m/cap; setcap cap_net_raw+ep m/cap; echo x > m/acl
      python3 -c "${SET_ACL}; os.setxattr('m/acl', 'user.k', b'v')"`);
    expect((await box.files.uploadTree(join(dir, 'm'), '/w/rights')).omittedCount).toBe(0);
    const plain = await box.files.downloadTree('/w/rights', join(dir, 'plain'));
    expect(byPath(plain.omitted).map(({ path, what }) => `${path.replace('su2', 'su')} ${what}`)).toEqual([
      'acl xattr',
      'cap xattr',
      'shared set-id',
      'su set-id',
    ]);
    expect(statSync(join(dir, 'plain/su')).mode & 0o7000).toBe(0);
    expect(here(`python3 -c "import os; print(os.listxattr('plain/acl'))"; getcap plain/cap`)).toBe("['user.k']\n");
    const whole = await box.files.downloadTree('/w/rights', join(dir, 'whole'), { owners: true });
    expect(whole.omittedCount).toBe(0);
    expect(here('getcap whole/cap; stat -c %a whole/su whole/su2 whole/shared')).toMatch(/cap_net_raw[+=]ep\n4755\n4755\n3777\n$/);
  });

  test('attributes that the local disk cannot keep are named, each file once', async () => {
    await inside(box, 'mkdir /w/attributes; echo x > /w/attributes/f; echo y > /w/attributes/g');
    mkdirSync(join(dir, 'm'));
    here(`echo x > m/f; python3 -c "import os; os.setxattr('m/f', 'user.a', b'1'); os.setxattr('m/f', 'user.b', b'2')"`);
    await box.files.uploadTree(join(dir, 'm'), '/w/attributes');
    mkdirSync(join(dir, 'poor'));
    execFileSync('mount', ['-t', 'ramfs', 'dsec-test', join(dir, 'poor')]);
    try {
      const report = await box.files.downloadTree('/w/attributes', join(dir, 'poor/tree'));
      expect(report).toMatchObject({ omittedCount: 1, omitted: [{ path: 'f', what: 'xattr' }] });
    } finally {
      execFileSync('umount', [join(dir, 'poor')]);
    }
  });

  test('what a user may list and not look at is named', async () => {
    await inside(box, 'mkdir /w/listed; echo x > /w/listed/f; mkdir /w/listed/d; chmod 744 /w/listed; chmod 755 /w');
    const report = await box.files.downloadTree('/w/listed', join(dir, 'listed'), { user: 'agent' });
    expect(byPath(report.omitted)).toEqual([
      { path: 'd', what: 'unreadable' },
      { path: 'f', what: 'unreadable' },
    ]);
    await inside(box, 'chmod 755 /w/listed; chmod 000 /w/listed/d /w/listed/f');
    const closed = await box.files.downloadTree('/w/listed', join(dir, 'closed'), { user: 'agent' });
    expect(byPath(closed.omitted)).toEqual([
      { path: 'd', what: 'unreadable' },
      { path: 'f', what: 'unreadable' },
    ]);
  });
});
