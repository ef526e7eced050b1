/** The real probes on the real machine: the tests need what they report, so nothing required may be absent; and they leave nothing. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runDoctor, unfit } from './doctor.ts';
import { cgroupMounts, read } from './helpers.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'dsec-doctor-test-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const mountsBelow = (directory: string): string[] => (read('/proc/self/mounts') ?? '').split('\n').filter((line) => line.includes(directory));
const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

test('finds everything that the platform cannot do without', async () => {
  expect(unfit(await runDoctor({ dataDir }))).toEqual([]);
});

test('leaves no file, mount, control group or descriptor', async () => {
  await runDoctor({ dataDir });
  const before = openDescriptors();
  await runDoctor({ dataDir });
  expect(openDescriptors()).toBeLessThanOrEqual(before);
  expect(readdirSync(dataDir)).toEqual([]);
  expect(mountsBelow(dataDir)).toEqual([]);
  const { v2, v1 } = cgroupMounts();
  for (const root of [v2, ...v1.values()]) if (root) expect(existsSync(join(root, `dsec-doctor-${process.pid}`))).toBe(false);
});

test('names a program that PATH does not have', async () => {
  const findings = await runDoctor({ dataDir, env: { PATH: dataDir } });
  expect(findings.find(({ name }) => name === 'mkfs.erofs')).toMatchObject({ status: 'absent', required: true });
});
