/** OCI images: what a sandbox has become goes out and comes back equal; what OCI cannot say is refused by name. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findSnapshot } from '#runtime/snapshots/names.ts';
import type { ProjectName, SnapshotId } from '#bus/ids.ts';
import { promote } from '#runtime/images/cli/oci.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { exportOci } from '#runtime/images/oci/export.ts';
import { importOci } from '#runtime/images/oci/import.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { copyProgram } from '#test/helpers/dynamic-programs.ts';
import { inside } from '#test/helpers/files.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import { makeBusyboxRoot, type TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

let host: TestPlatform;
let dsec: DsecClient;
let box: Sandbox;

givenPlatform({}, async (given) => {
  ({ host, dsec } = given);
  const root = join(host.dir, 'oci-root');
  makeBusyboxRoot(root);
  for (const program of ['/usr/sbin/setcap', '/usr/sbin/getcap']) copyProgram(root, program);
  execFileSync('sh', ['-euc', 'mkdir -p d/sub opt; touch d/old d/sub/older opt/kept opt/gone'], { cwd: root });
  await buildLayer(host.store, { name: 'oci-base', kind: 'base', source: { type: 'directory', path: root } });
  box = await dsec.runContainer({ image: 'oci-base' });
});

/** Links of a directory are the overlay's own business. */
const ALL = "find / -xdev -mindepth 1 ! -path '/proc*' ! -path '/sys*' ! -path '/dev*'";
const MANIFEST = `(${ALL} ! -type d -exec busybox stat -c '%n|%F|%a|%u:%g|%h|%N|%y' {} +; ${ALL} -type d -exec busybox stat -c '%n|%F|%a|%u:%g|%y' {} +) | sort | grep -v -e '^/bin/' -e '^/etc/host' -e '^/etc/resolv'; getcap /w/capt; md5sum /w/sparse`;

const out = async (snapshotId: string, target: string, form: 'dir' | 'tar' = 'dir') =>
  exportOci(host.store, {
    reference: snapshotId,
    layers: findSnapshot(host.store, 'default' as ProjectName, snapshotId as SnapshotId).layers,
    target: join(host.dir, target),
    form,
    createdAt: new Date(0),
  });

test('a tree goes out and comes back equal: deletions, renames, links, set-id bits, capabilities, times (C18, C27)', async () => {
  await inside(
    box,
    `rm -r /d && mkdir -p /d/sub && touch /d/new; rm /opt/gone; mv /opt /moved; cd /w; echo hi>a; ln a b; ln -s a lnk; ln -s missing dangling; mkdir stk; chmod 1777 stk
     cp /bin/busybox su; chown 1234:5678 su; chmod 4755 su; cp /bin/busybox capt; setcap cap_net_raw+ep capt; echo z>zero; chmod 0000 zero; busybox mkfifo ff
     touch -d '2001-02-03 04:05:06' a; dd if=/dev/zero of=sparse bs=1 count=1 seek=5000000 2>/dev/null; touch -d '2002-02-02 02:02:02' /tmp /d /w`,
  );
  await box.snapshot({ snapshotId: 'whole' });
  for (const form of ['dir', 'tar'] as const) {
    const exported = await out('whole', `whole.${form}`, form);
    expect(exported.omitted).toEqual([]);
    const record = await importOci(host.store, `back/${form}`, join(host.dir, `whole.${form}`));
    await using original = await dsec.runContainer({ image: { snapshot: 'whole' } });
    await using copy = await dsec.runContainer({ image: record.name });
    const script = `${MANIFEST}; ls /d /opt 2>/dev/null; true`;
    expect(await inside(copy, script)).toBe(await inside(original, script));
    expect(await inside(copy, 'find /d | sort')).toBe('/d\n/d/new\n/d/sub\n');
  }
  expect(readdirSync(join(host.dir, 'whole.dir')).sort()).toEqual(['blobs', 'index.json', 'oci-layout']);
});

test('the same snapshot gives the same image; the target is never overwritten', async () => {
  expect((await out('whole', 'again')).manifestDigest).toBe((await out('whole', 'once-more')).manifestDigest);
  expect((await refusal(out('whole', 'again'))).code).toBe('FILE_EXISTS');
});

test('names that OCI layers give a meaning to are refused by path, and nothing is left (C33)', async () => {
  await using odd = await dsec.runContainer({ image: 'oci-base' });
  await inside(odd, 'mkdir -p /t; echo keep > /t/a; echo x > /t/.wh.a');
  await odd.snapshot({ snapshotId: 'odd' });
  const error = await refusal(out('odd', 'odd'));
  expect([error.code, error.details]).toEqual(['UNPORTABLE_FILE', { path: '/t/.wh.a' }]);
  expect(readdirSync(host.dir).filter((name) => name.startsWith('odd'))).toEqual(['odd-root'].filter((name) => existsSync(join(host.dir, name))));
});

test('images of others: several layers, deletions between them; what does not match its digest is refused', async () => {
  const [lower, upper] = [join(host.dir, 'lower'), join(host.dir, 'upper')];
  execFileSync('sh', [
    '-euc',
    'mkdir -p "$0/d" "$1/d"; cp -a "$2/." "$0"; echo 1 > "$0/d/gone"; touch "$1/d/.wh.gone"; echo 2 > "$1/d/new"',
    lower,
    upper,
    join(host.dir, 'root'),
  ]);
  const layout = join(host.dir, 'foreign');
  execFileSync('sh', [
    '-euc',
    `mkdir -p "$0/blobs/sha256"; cd "$0"; put() { h=$(sha256sum < "$1" | cut -d' ' -f1); mv "$1" blobs/sha256/$h; echo $h; }; size() { stat -c %s blobs/sha256/$1; }
     tar -C "$1" -czf l1 .; tar -C "$2" -cf l2 .; a=$(put l1); b=$(put l2); echo '{}' > c; c=$(put c)
     printf '{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":3},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s},{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%s}]}' $c $a $(size $a) $b $(size $b) > m
     m=$(put m); printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s}]}' $m $(size $m) > index.json`,
    layout,
    lower,
    upper,
  ]);
  const record = await importOci(host.store, 'foreign', layout);
  expect(record.below).toHaveLength(1);
  await using copy = await dsec.runContainer({ image: 'foreign' });
  expect(await inside(copy, 'ls /d')).toBe('new\n');
  const blob = readdirSync(join(layout, 'blobs/sha256')).find((name) => readFileSync(join(layout, 'blobs/sha256', name)).byteLength > 1_000) as string;
  writeFileSync(join(layout, 'blobs/sha256', blob), Buffer.from('x'), { flag: 'r+' });
  expect((await refusal(importOci(host.store, 'foreign', layout))).code).toBe('INVALID_ARGUMENT');
});

test('a snapshot’s layer under a name of its own stands above any base', async () => {
  await using origin = await dsec.runContainer({ image: 'small' });
  await inside(origin, 'mkdir -p /w/deps; echo 1 > /w/deps/a');
  await origin.snapshot({ snapshotId: 'deps' });
  await promote(host.store, '@default/deps', 'repo/deps:1', 'workspace');
  await using user = await dsec.runContainer({ image: 'oci-base', workspaces: ['repo/deps:1'] });
  expect(await inside(user, 'cat /w/deps/a; ls /d')).toBe('1\nold\nsub\n');
  expect((await refusal(dsec.runContainer({ image: 'small', workspaces: ['foreign'] }))).code).toBe('INVALID_ARGUMENT');
});
