/** A run of tests that is killed leaves nothing either: no launcher, no sandbox, no swap device, no file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { bundled } from '#test/helpers/bundled.ts';

const cgroupsNamed = (name: string): string[] =>
  ['', ...readdirSync('/sys/fs/cgroup')].map((hierarchy) => join('/sys/fs/cgroup', hierarchy, name)).filter((path) => existsSync(path));
const launchersOf = (runDir: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`dsec-launcher\0--run\0${runDir}\0`);
    } catch {
      return false; // no process, or one that has ended
    }
  });

test('what a killed run has started, mounted and written is gone soon after its death', async () => {
  const { DSEC_TEST_RUN: _ours, ...env } = process.env;
  const run = spawn(process.execPath, [await bundled('test/helpers/killed-run.ts'), join(import.meta.dirname, 'leaks.mjs')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(run.stdout), 'line')) as [string];
  const { directory, cgroup, runDir } = JSON.parse(line) as { directory: string; cgroup: string; runDir: string };
  const swap = `/sys/block/zram${readFileSync(join(runDir, 'swap'), 'utf8').trim()}`;
  expect(launchersOf(runDir)).toHaveLength(1);
  expect(cgroupsNamed(cgroup)).not.toEqual([]);

  run.kill('SIGKILL');
  await expect
    .poll(() => [...launchersOf(runDir), ...cgroupsNamed(cgroup), ...[directory, runDir, swap].filter((path) => existsSync(path))], { timeout: 60_000 })
    .toEqual([]);
});
