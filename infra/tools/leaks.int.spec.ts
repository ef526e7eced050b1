/** The leak check finds what it claims to find. It runs in a process of its own, as `npm test` runs it. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const LEAKS = join(import.meta.dirname, 'leaks.mjs');

/** What the check reports around `deed`, which runs in a fresh Node process without the mark of this run. */
const reportAround = (deed: string): string[] => {
  const script = `
    import { spawn } from 'node:child_process';
    import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
    import { tmpdir } from 'node:os';
    import { watchForLeaks } from ${JSON.stringify(LEAKS)};
    const leaks = watchForLeaks({ settleMs: 300 });
    const undo = [];
    ${deed}
    console.log(JSON.stringify(await leaks()));
    for (const step of undo) step();`;
  const { DSEC_TEST_RUN: _mine, ...env } = process.env;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
};

test('finds a process that outlives its test', () => {
  const left = reportAround(`const child = spawn('sleep', ['31.4159']); undo.push(() => child.kill());`);
  expect(left.filter((line) => line.includes('31.4159'))).toEqual([expect.stringMatching(/^process \d+ \(sleep 31\.4159\)$/)]);
});

test('finds a temporary directory of the platform', () => {
  const left = reportAround(
    `const dir = mkdtempSync(tmpdir() + '/dsec-leak-probe-'); undo.push(() => rmSync(dir, { recursive: true }), () => rmdirSync(tmpdir()));`,
  );
  expect(left).toEqual([expect.stringMatching(/^temporary file \/.*\/dsec-r\d+\/dsec-leak-probe-\w+$/)]);
});

test('finds an empty control group of the platform', () => {
  const left = reportAround(`
    const root = readFileSync('/proc/self/mounts', 'utf8').split('\\n').map((line) => line.split(' ')).find(([, , type]) => type === 'cgroup2' || type === 'cgroup')[1];
    const group = root + '/dsec-leak-probe-' + process.pid;
    mkdirSync(group); undo.push(() => rmdirSync(group));`);
  expect(left.some((line) => /^cgroup .*\/dsec-leak-probe-\d+$/.test(line))).toBe(true);
});

test('says nothing of what another run on this machine has made', () => {
  const left = reportAround(`
    const root = readFileSync('/proc/self/mounts', 'utf8').split('\\n').map((line) => line.split(' ')).find(([, , type]) => type === 'cgroup2' || type === 'cgroup')[1];
    const name = 'dsec-leak-other-' + process.pid;
    mkdirSync(root + '/' + name); undo.push(() => rmdirSync(root + '/' + name));
    const { DSEC_TEST_RUN: mine, ...env } = process.env;
    const other = spawn('sh', ['-c', 'sleep 31.41; exit', '--cgroup', name], { env, detached: true }); undo.push(() => process.kill(-other.pid, 'SIGKILL'));
    const dir = mkdtempSync('/tmp/dsec-leak-other-'); undo.push(() => rmSync(dir, { recursive: true }));`);
  expect(left).toEqual([]);
});
