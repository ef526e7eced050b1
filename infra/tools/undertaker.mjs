/**
 * Cleans up after a run of tests or benchmarks that was killed: a process of its own that waits for the run's end at a pipe, and does
 * nothing when the run says that it has ended by itself.
 *
 * Launchers outlive whoever started them, and sandboxes outlive launchers; that is what the platform promises. So after a SIGKILL,
 * or `timeout`, somebody has to end them. Only what the run has made: processes that carry its mark, and of their launchers the control
 * groups, the run directory and the swap device named there; then its directory of temporary files. Run as a program by `hire`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { attempt, directoriesIn, namesIn, textOf } from './vanishing.mjs';

export const MARK = 'DSEC_TEST_RUN';
const ROUNDS = 100;
const ROUND_MS = 50;
const CGROUP_DEPTH = 3;
const SWAP_HEADER_BYTES = 4_096;
const SWAP_LABEL_AT = 1_024 + 12 + 16;
const SELF = fileURLToPath(import.meta.url);

/** Watches over the run with this mark and directory; call the result when the run ends by itself. */
export const hire = ({ mark, directory }) => {
  const { [MARK]: _mark, ...env } = process.env;
  const child = spawn(process.execPath, [SELF], { env, detached: true, stdio: ['pipe', 'ignore', 'inherit'], cwd: '/' });
  child.unref();
  child.stdin.unref();
  child.stdin.on('error', () => {}); // it was killed: then nobody cleans up
  child.stdin.write(`${JSON.stringify({ mark, directory })}\n`);
  return () => void child.stdin.end('ended\n');
};

const main = async () => {
  let said = '';
  for await (const chunk of process.stdin) said += chunk;
  const [order, ended] = said.split('\n');
  if (ended === 'ended' || !order) return;
  const { mark, directory } = JSON.parse(order);
  const estates = [...estatesOf(mark), ...estatesIn(directory)];
  await untilNone(() => marked(mark), kill);
  for (const { cgroup, runDir } of estates) {
    await untilNone(() => groupsNamed(cgroup), removeGroup);
    attempt(() => removeSwap(runDir));
    if (runDir) attempt(() => rmSync(runDir, { recursive: true, force: true }));
  }
  attempt(() => rmSync(directory, { recursive: true, force: true }));
  process.stderr.write(`the run was killed; ended what it had started, and removed ${directory}\n`);
};

/** What living launchers of the run own. */
const estatesOf = (mark) =>
  marked(mark)
    .map((pid) => textOf(`/proc/${pid}/cmdline`).split('\0'))
    .filter(([program]) => program?.endsWith('/dsec-launcher'))
    .map((words) => ({ cgroup: after(words, '--cgroup'), runDir: after(words, '--run') }));

/** What dead ones have left: named after the platforms' directories, as `cgroupNameOf` and `runDirNamed` do. */
const estatesIn = (directory) =>
  namesIn(directory).flatMap((name) =>
    ['/run', '/dev/shm'].map((memory) => ({
      cgroup: `dsec-${createHash('sha256')
        .update(join(directory, name, 'data'))
        .digest('hex')
        .slice(0, 10)}`,
      runDir: existsSync(join(memory, name)) ? join(memory, name) : undefined,
    })),
  );

const after = (words, flag) => words[words.indexOf(flag) + 1];

const marked = (mark) =>
  namesIn('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => textOf(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${mark}`));

const groupsNamed = (name) => {
  const found = [];
  const walk = (directory, depth) => {
    for (const entry of directoriesIn(directory)) {
      if (entry === name) found.push(join(directory, entry));
      else if (depth > 1) walk(join(directory, entry), depth - 1);
    }
  };
  if (name?.startsWith('dsec-')) walk('/sys/fs/cgroup', CGROUP_DEPTH);
  return found;
};

const kill = (pid) => process.kill(Number(pid), 'SIGKILL');

/** What the old freezer holds does not die before it is thawed. */
const removeGroup = (group) => {
  if (existsSync(join(group, 'freezer.state'))) attempt(() => writeFileSync(join(group, 'freezer.state'), 'THAWED'));
  for (const pid of textOf(join(group, 'cgroup.procs')).split('\n').filter(Boolean)) attempt(() => kill(pid));
  for (const child of directoriesIn(group)) removeGroup(join(group, child));
  attempt(() => rmdirSync(group));
};

const removeSwap = (runDir) => {
  const number = Number(readFileSync(join(runDir, 'swap'), 'utf8'));
  const device = `/dev/zram${number}`;
  const header = Buffer.alloc(SWAP_HEADER_BYTES);
  const fd = openSync(device, 'r');
  readSync(fd, header, 0, SWAP_HEADER_BYTES, 0);
  closeSync(fd);
  if (header.toString('latin1', SWAP_LABEL_AT, SWAP_LABEL_AT + 5) !== 'dsec-') return;
  attempt(() => execFileSync('swapoff', [device], { stdio: 'ignore' }));
  writeFileSync(`/sys/block/zram${number}/reset`, '1');
  writeFileSync('/sys/class/zram-control/hot_remove', String(number));
};

const untilNone = async (find, end) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = find();
    if (left.length === 0) return;
    for (const one of left) attempt(() => end(one));
    await delay(ROUND_MS);
  }
};

if (process.argv[1] === SELF) await main();
