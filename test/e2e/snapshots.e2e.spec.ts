/** Snapshots: what a sandbox has written starts new sandboxes, exactly as it was, and the sandbox itself goes on. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildLayer } from '#runtime/images/mod.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { copyProgram } from '#test/helpers/dynamic-programs.ts';
import { inside } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { makeBusyboxRoot, type TestPlatform } from '#test/helpers/platform.ts';
import { execFileSync } from 'node:child_process';

let host: TestPlatform;
let dsec: DsecClient;

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  const root = join(host.dir, 'odd-root');
  makeBusyboxRoot(root);
  for (const program of ['/usr/sbin/setcap', '/usr/sbin/getcap', '/usr/bin/setfacl', '/usr/bin/getfacl'].filter(isProgram)) copyProgram(root, program);
  execFileSync(
    'sh',
    [
      '-euc',
      'mkdir -p d/sub t2 opt; touch d/old d/sub/older opt/kept opt/gone; echo base > etc/name; mkdir -p l/sub; echo one > l/a; ln l/a l/b; ln l/a l/sub/c; echo p > l/p; ln l/p l/q; mkdir x; cp bin/busybox x/sleep; ln x/sleep x/again',
    ],
    { cwd: root },
  );
  await buildLayer(host.store, { name: 'odd', kind: 'base', source: { type: 'directory', path: root } });
});

function isProgram(path: string): boolean {
  try {
    execFileSync('test', ['-x', path]);
    return true;
  } catch {
    return false;
  }
}

/** One line for each thing below a directory, times to the nanosecond; sizes of directories are a file system's own business. */
const MANIFEST = `find . -mindepth 1 -exec busybox stat -c '%n|%F|%a|%u:%g|%h|%N|%y' {} + | sort`;

/** A sandbox of the snapshot, and its answer to a script. */
const inCopy = async (snapshotId: string, script: string): Promise<string> => {
  await using copy = await dsec.runContainer({ image: { snapshot: snapshotId } });
  return await inside(copy, script); // before the copy is stopped
};

describe.each([
  ['in a directory of the node', {}],
  ['on a disk of its own', { diskLimitMb: 128 }],
] as const)('an upper %s', (_, limits) => {
  let box: Sandbox;
  beforeAll(async () => {
    box = await dsec.runContainer({ image: 'odd', ...limits });
  });
  afterAll(() => box.stop());

  test('deleted directories stay deleted, in every generation (C18)', async () => {
    await inside(box, 'rm -r /d && mkdir -p /d/sub && touch /d/new; rm /opt/gone; mv /opt /moved');
    const { snapshotId } = await box.snapshot();
    const view = 'find /d /moved | sort; ls /opt 2>/dev/null';
    const expected = '/d\n/d/new\n/d/sub\n/moved\n/moved/kept\n';
    expect(await inCopy(snapshotId, `${view}; true`)).toBe(expected);
    await using second = await dsec.runContainer({ image: { snapshot: snapshotId }, ...limits });
    await inside(second, 'mkdir -p /d/x');
    const next = await second.snapshot();
    expect(await inCopy(next.snapshotId, `${view}; true`)).toBe(expected.replace('/moved\n', '/d/x\n/moved\n').replace('/d/sub\n/d/x', '/d/sub\n/d/x'));
  });

  test('links, set-id bits, capabilities, attributes, times, holes, sockets, odd names (C27, C33)', async () => {
    await inside(
      box,
      `mkdir /w/m; cd /w/m; echo hi>a; ln a b; ln -s a lnk; ln -s missing dangling; mkdir emptydir stk; chmod 1777 stk
       cp /bin/busybox su; chown 1234:5678 su; chmod 4755 su; cp /bin/busybox capt; setcap cap_net_raw+ep capt
       echo z>zero; chmod 0000 zero; busybox mkfifo ff; touch -d '2001-02-03 04:05:06' a
       dd if=/dev/zero of=sparse bs=1 count=1 seek=50000000 2>/dev/null; echo x > "$(printf 'line\\nbreak \\377')"
       mkdir -p /t; echo keep > /t/a; echo x > /t/.wh.a; echo x > /t2/.wh..wh..opq; mkdir /.wh.etc; echo more >> /etc/name
       n=$(printf 'n%.0s' $(seq 200)); mkdir -p "/w/deep/$n/$n/$n"; echo leaf > "/w/deep/$n/$n/$n/leaf"; for i in $(seq 500); do echo $i > "/w/m/file-$i"; done`,
    );
    const manifest = `cd /w; ${MANIFEST} > /tmp/manifest; md5sum < /tmp/manifest; grep -v -e file- -e deep /tmp/manifest; rm /tmp/manifest; getcap /w/m/capt; ls -A /t /t2; cat /t/a /etc/name; busybox md5sum /w/m/sparse`;
    const expected = await inside(box, manifest);
    expect(expected).toContain('cap_net_raw');
    const { snapshotId, facts } = await box.snapshot();
    expect(await inCopy(snapshotId, manifest)).toBe(expected);
    expect(await inCopy(snapshotId, 'cd /w/m; stat -c %i a b | sort -u | wc -l; echo more >> a; cat a')).toBe('1\nhi\nmore\n');
    expect(facts.storedBytes).toBeLessThan(20_000_000);
    expect(await inside(box, manifest)).toBe(expected);
  });

  test('a file with several names is one file, whichever is written, in every generation (C27)', async () => {
    const view = 'cd /l; cat b sub/c; stat -c "%i %h" b sub/c | sort -u; cat p q';
    const shown = (text: string, links: number): RegExp => new RegExp(`^(${text}\n){2}\\d+ ${links}\np\np\n$`);
    await using origin = await dsec.runContainer({ image: 'odd', ...limits });
    expect(await inside(origin, `cd /l; echo two >> a; cat a; ${view}`)).toMatch(new RegExp(`^one\ntwo\n${shown('one\ntwo', 3).source.slice(1)}`));
    const first = await origin.snapshot();
    expect(await inside(origin, view)).toMatch(shown('one\ntwo', 3));
    await using second = await dsec.runContainer({ image: { snapshot: first.snapshotId }, ...limits });
    expect(await inside(second, `cd /l; echo three >> sub/c; ${view}`)).toMatch(shown('one\ntwo\nthree', 3));
    await inside(second, 'rm /l/a; mkdir /l/new; ln /l/b /l/new/d');
    expect(await inside(second, view)).toMatch(shown('one\ntwo\nthree', 3));
    const [third] = (await second.fork(1)).sandboxes;
    expect(await inside(third as Sandbox, `ls /l; ${view}; cat /l/new/d`)).toMatch(/^b\nnew\np\nq\nsub\n(one\ntwo\nthree\n){2}\d+ 3\np\np\none\ntwo\nthree\n$/);
    await third?.stop();
  });

  test('also of a program that runs, and its set-id bit stays (C27)', async () => {
    await using origin = await dsec.runContainer({ image: 'odd', ...limits });
    await inside(origin, 'chmod 4755 /x/sleep');
    await origin.start(['/x/sleep', '600']);
    const view = 'cd /x; stat -c "%a %h" sleep again; stat -c %i sleep again | sort -u | wc -l';
    expect(await inside(origin, view)).toBe('4755 2\n4755 2\n1\n');
    expect(await inCopy((await origin.snapshot()).snapshotId, view)).toBe('4755 2\n4755 2\n1\n');
  });

  test('also when the name that was written is gone again (C27)', async () => {
    await using origin = await dsec.runContainer({ image: 'odd', ...limits });
    await inside(origin, 'cd /l; echo two >> a; rm a; rm q');
    const view = 'cd /l; ls; cat b sub/c; stat -c "%h" b p';
    const expected = 'b\np\nsub\none\ntwo\none\ntwo\n2\n1\n';
    expect(await inside(origin, view)).toBe(expected);
    expect(await inCopy((await origin.snapshot()).snapshotId, view)).toBe(expected);
    expect(await inside(origin, view)).toBe(expected);
  });

  test('the same upper gives the same layer; one that changed gives another, which stores what changed', async () => {
    await inside(box, 'dd if=/dev/urandom of=/w/large bs=1M count=40 2>/dev/null');
    const first = await box.snapshot();
    const again = await box.snapshot();
    expect([again.layer, again.facts.storedBytes < 2_000_000]).toEqual([first.layer, true]);
    await inside(box, 'dd if=/dev/urandom of=/w/large bs=1M count=1 seek=20 conv=notrunc 2>/dev/null');
    const changed = await box.snapshot();
    expect(changed.layer).not.toBe(first.layer);
    expect(changed.facts.storedBytes).toBeLessThan(3_500_000);
    expect(changed.facts.sharedBytes).toBeGreaterThan(35_000_000);
    expect(await inCopy(changed.snapshotId, 'md5sum /w/large')).toBe(await inside(box, 'md5sum /w/large'));
  });

  test('commands go on, and what asks meanwhile is answered', async () => {
    const ticking = await box.start('i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; sleep 0.02; done');
    const [{ facts }] = await Promise.all([box.snapshot(), box.exec(['true']), box.files.write('/w/during', 'x')]);
    expect(facts.frozenMs).toBeGreaterThan(0);
    await ticking.wait();
    expect((await ticking.stdout.string()).trim().split('\n')).toHaveLength(200);
  });
});

test('scrub rules leave out what they name, and say so', async () => {
  await using box = await dsec.runContainer({ image: 'odd' });
  await inside(
    box,
    'mkdir -p /tmp/x /root/.cache/y /w/p/__pycache__ /root/.ssh; touch /tmp/x/1 /root/.bash_history /w/p/__pycache__/a.pyc /w/p/a.py; echo k > /root/.ssh/id_rsa',
  );
  const { snapshotId, facts } = await box.snapshot({ scrub: 'standard' });
  expect(facts.removed.map(({ path }) => path).sort()).toEqual(['/root/.bash_history', '/root/.cache', '/root/.ssh/id_rsa', '/tmp/x', '/w/p/__pycache__']);
  expect(facts.removedCount).toBe(5);
  expect(await inCopy(snapshotId, 'find /tmp /root /w -mindepth 1 | sort')).toBe('/root/.ssh\n/w/p\n/w/p/a.py\n');
  expect(await inside(box, 'cat /root/.ssh/id_rsa')).toBe('k\n');
  await using mine = await dsec.runContainer({ image: 'odd' });
  await inside(mine, 'mkdir -p /w/a/b; touch /w/a/b/secret.key /w/a/b/c');
  const own = await mine.snapshot({ scrub: ['/w/**/*.key'] });
  expect(await inCopy(own.snapshotId, 'find /w/a | sort')).toBe('/w/a\n/w/a/b\n/w/a/b/c\n');
  expect((await refusal(mine.snapshot({ scrub: ['relative'] }))).code).toBe('INVALID_ARGUMENT');
});

test('a name means one snapshot of one sandbox; the list tells which there are; its origin is in the copy', async () => {
  await using box = await dsec.runContainer({ image: 'odd' });
  await inside(box, 'echo 1 > /w/state');
  const first = await box.snapshot({ snapshotId: 'fixed' });
  await inside(box, 'echo 2 > /w/state');
  expect((await box.snapshot({ snapshotId: 'fixed' })).layer).toBe(first.layer);
  await using other = await dsec.runContainer({ image: 'odd' });
  expect((await refusal(other.snapshot({ snapshotId: 'fixed' }))).code).toBe('KEY_CONFLICT');
  expect(await inside(other, 'echo alive')).toBe('alive\n');
  await using copy = await dsec.runContainer({ image: { snapshot: 'fixed' } });
  expect(copy.state?.forkedFrom).toBe(box.id);
  const listed = [];
  for await (const snapshot of dsec.snapshots({ sandboxId: box.id })) listed.push([snapshot.id, snapshot.layers.at(-1)]);
  expect(listed).toEqual([['fixed', first.layer]]);
  expect(await dsec.deleteSnapshot('fixed')).toBe(true);
  expect((await refusal(dsec.runContainer({ image: { snapshot: 'fixed' } }))).code).toBe('SNAPSHOT_NOT_FOUND');
  expect((await refusal(dsec.runContainer({ image: 'snapshots/default/fixed' }))).code).toBe('IMAGE_NOT_FOUND');
  expect(await inside(copy, 'cat /w/state')).toBe('1\n');
});

test('nothing of a snapshot is left where it was made', () => {
  expect(readdirSync(join(host.dir, 'data/layers/build'))).toEqual([]);
});
