/** What root inside is allowed at most, however it is come by; and images that were made to give more. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '#sdk/mod.ts';
import { Lab } from './lab.ts';

/** Docker's default set without CAP_NET_RAW; bits as in linux/capability.h. */
const BOUNDING = '00000000a80405fb';
const NONE = '0000000000000000';
/** A place of the host that an image's links point to. */
const lure = mkdtempSync(join(tmpdir(), 'dsec-lure-'));

let lab: Lab;
let box: Sandbox;

beforeAll(async () => {
  lab = await Lab.open((root) => {
    const probe = (name: string): string => join(root, 'probe', name);
    copyFileSync(probe('rights'), probe('setuid'));
    chmodSync(probe('setuid'), 0o4755);
    copyFileSync(probe('rights'), probe('capped'));
    execFileSync(probe('rights'), ['grant', probe('capped')]);
    mkdirSync(join(root, 'nodes'));
    const nodes = [
      ['zero', 'c', '1', '5'],
      ['mem', 'c', '1', '1'],
      ['disk', 'b', '254', '0'],
      ['kmsg', 'c', '1', '11'],
      ['fuse', 'c', '10', '229'],
    ];
    for (const [name = '', ...kind] of nodes) execFileSync('mknod', ['-m', '666', join(root, 'nodes', name), ...kind]);
    writeFileSync(join(lure, 'hosts'), 'of the host\n');
    symlinkSync(`../../../../../../../../${lure}/hosts`, join(root, 'etc/hosts'));
    symlinkSync(`${lure}/resolv.conf`, join(root, 'etc/resolv.conf'));
  });
  box = await lab.sandbox();
});
afterAll(async () => {
  await lab?.close();
  rmSync(lure, { recursive: true, force: true });
});

describe('rights', () => {
  test('a command of root has Docker’s capabilities but the one for raw packets, a filter, and three descriptors', async () => {
    const rights = await lab.inside(box, ['rights', 'show']);
    expect(Object.fromEntries(rights)).toEqual({
      ...{ Uid: '0 0 0 0', CapInh: NONE, CapPrm: BOUNDING, CapEff: BOUNDING, CapBnd: BOUNDING, CapAmb: NONE, NoNewPrivs: '0', Seccomp: '2' },
      ...{ 'fd 0': 'ok', 'fd 1': 'ok', 'fd 2': 'ok' },
    });
  });

  test('a setuid program makes root of the sandbox, and no more', async () => {
    const agent = await lab.inside(box, ['rights', 'show'], { user: 'agent' });
    expect([agent.get('Uid'), agent.get('CapPrm'), agent.get('CapBnd')]).toEqual(['1000 1000 1000 1000', NONE, BOUNDING]);
    const raised = await lab.inside(box, ['setuid', 'show'], { user: 'agent' });
    expect([raised.get('Uid'), raised.get('CapPrm'), raised.get('CapBnd'), raised.get('Seccomp')]).toEqual(['1000 0 0 0', BOUNDING, BOUNDING, '2']);
  });

  test('a program that root inside marks with every capability, or that the image brings so, gives those of the bounding set', async () => {
    await box.runShell('cp /probe/rights /w/own; /probe/rights grant /w/own');
    const own = await box.exec(['/w/own', 'show'], { user: 'agent' });
    expect(own.stdout).toContain(`CapPrm\t${BOUNDING}`);
    const brought = await lab.inside(box, ['capped', 'show'], { user: 'agent' });
    expect([brought.get('Uid'), brought.get('CapPrm'), brought.get('CapBnd')]).toEqual(['1000 1000 1000 1000', BOUNDING, BOUNDING]);
  });

  test('control: on the host the mark of the image gives a common user everything', () => {
    expect(lab.asNobody('capped', 'show').get('CapPrm')).toMatch(/^000001ff/);
  });

  test('a crash starts no helper of the host: the limit of core files is the one that forbids it', async () => {
    const limits = await box.runShell('grep "core file" /proc/self/limits; grep "core file" /proc/1/limits');
    expect(
      limits.stdout.split('\n').map((line) =>
        line
          .trim()
          .split(/\s{2,}/)
          .slice(1, 3),
      ),
    ).toEqual([['1', '1'], ['1', '1'], []]);
  });
});

describe('what an image brings', () => {
  const NODES = ['/nodes/zero', '/nodes/mem', '/nodes/disk', '/nodes/kmsg', '/nodes/fuse'];

  test('device nodes open nothing', async () => {
    const listed = await box.runShell('ls -l /nodes');
    expect(listed.stdout.match(/^[bc]rw/gm)).toHaveLength(NODES.length); // they did get in
    const outcomes = await lab.inside(box, ['files', 'read', ...NODES]);
    expect([...outcomes.values()]).toEqual(NODES.map(() => 'EACCES'));
    const written = await lab.inside(box, ['files', 'write', ...NODES]);
    expect([...written.values()]).toEqual(NODES.map(() => 'EACCES'));
  });

  test('control: the same nodes open on the host', () => {
    const node = lab.imagePath('/nodes/zero');
    expect(lab.onHost('files', 'read', node).get(node)).toBe('ok 256');
  });

  test('links where the platform lays its files lead nowhere but into the image', async () => {
    const seen = await box.runShell(`cat /etc/hosts /etc/resolv.conf; ls ${lure}`);
    expect(seen.stdout).toBe('');
    expect(seen.stderr.match(/No such file/g)).toHaveLength(3);
    expect(readFileSync(join(lure, 'hosts'), 'utf8')).toBe('of the host\n');
    expect(existsSync(join(lure, 'resolv.conf'))).toBe(false);
  });
});
