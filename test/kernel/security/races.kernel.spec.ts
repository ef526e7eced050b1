/** Root inside moves directories and puts links in their place while files of an upload are on their way: none of them goes elsewhere. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DsecError } from '#bus/errors.ts';
import { type ForgedEntry, forgeTar } from '#runtime/images/testing/forge-tar.ts';
import type { Command, Sandbox } from '#sdk/mod.ts';
import { Lab } from './lab.ts';

const FILES = 2_000;
const ROUNDS = 5;

let lab: Lab;
let box: Sandbox;
let attacker: Command;

/** As fast as it can: the directory, a link in its place, the directory again. */
const SWAP = `
  mkdir -p /w/dest/d /w/outside; cd /w/dest
  while :; do mv d away; ln -s /w/outside d; rm d; mv away d; done 2>/dev/null`;

beforeAll(async () => {
  lab = await Lab.open();
  box = await lab.sandbox();
  attacker = await box.start(['busybox', 'sh', '-c', `alias mv='busybox mv'; ${SWAP.replaceAll('mv ', 'busybox mv ')}`]);
});
afterAll(async () => {
  await attacker?.kill();
  await lab?.close();
});

async function* archive(round: number): AsyncGenerator<Uint8Array> {
  const files = Array.from({ length: FILES }, (_, n): ForgedEntry => ({ name: `d/r${round}-${n}`, body: 'x' }));
  yield forgeTar([{ name: 'd', type: 'directory' }, ...files]);
}
const outside = async (): Promise<number> => Number((await box.runShell('ls -A /w/outside | wc -l')).stdout);

test('control: whoever follows names writes outside', async () => {
  await expect
    .poll(async () => {
      await box.runShell('cd /w/dest; for i in $(seq 2000); do echo x > d/naive$i; done 2>/dev/null');
      return outside();
    })
    .toBeGreaterThan(0);
  await box.runShell('rm -rf /w/outside; mkdir /w/outside');
});

test('an upload of thousands of files: in their place, or refused with a name', async () => {
  let placed = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const code = await box.files.uploadTree(archive(round), '/w/dest').then(
      () => 'whole',
      (error: DsecError) => error.code,
    );
    expect(['whole', 'UNSAFE_ENTRY', 'TOO_MANY_LINKS', 'NOT_A_DIRECTORY', 'FILE_NOT_FOUND', 'FILE_EXISTS']).toContain(code);
    placed += code === 'whole' ? FILES : 0;
  }
  await attacker.kill();
  expect(await outside()).toBe(0);
  const here = Number((await box.runShell('find /w/dest -type f -name "r*" | wc -l')).stdout);
  expect(here).toBeGreaterThanOrEqual(placed);
  expect(here).toBeGreaterThan(0);
});

test('a removal of the tree takes nothing that the links lead to', async () => {
  await box.runShell('mkdir -p /w/keep/sub; for i in $(seq 200); do echo x > /w/keep/sub/$i; done');
  const swapping = await box.start(
    'mkdir -p /w/gone/sub; cd /w/gone; while :; do mkdir -p sub; touch sub/a sub/b; busybox mv sub away; ln -s /w/keep/sub sub; rm sub; busybox mv away sub; done 2>/dev/null',
  );
  for (let round = 0; round < 20; round += 1) await box.files.remove('/w/gone', { recursive: true }).catch(() => undefined);
  await swapping.kill();
  expect((await box.runShell('ls /w/keep/sub | wc -l')).stdout).toBe('200\n');
});
