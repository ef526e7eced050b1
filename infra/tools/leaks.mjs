/**
 * Leak check around a test run: what the tests started, mounted or made must be gone when they end.
 *
 * A process counts as ours when it carries the run's mark in its environment. Control groups, mounts, named network namespaces, loop
 * devices and temporary files count when they are new and carry the platform's name. `npm test` fails on a leak (`check.mjs`); a run
 * of single files, beside which another may be running, only prints it (the default export, vitest's global set-up).
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export const MARK = 'DSEC_TEST_RUN';
/** The kernel tears namespaces and control groups down in its own time. */
const SETTLE_MS = 5_000;
const CGROUP_DEPTH = 3;

/** Starts watching; the result tells, after the run, what is left: one line per thing. Processes started from now on inherit the mark. */
export const watchForLeaks = ({ settleMs = SETTLE_MS } = {}) => {
  process.env[MARK] ??= randomBytes(8).toString('hex');
  const run = process.env[MARK];
  const before = new Set(thingsOf(run));
  return async () => {
    const until = performance.now() + settleMs;
    for (;;) {
      const left = thingsOf(run).filter((thing) => !before.has(thing));
      if (left.length === 0 || performance.now() > until) return left;
      await delay(100);
    }
  };
};

let watching = false;

/** Vitest calls this once per project of a run; the first call watches for all. */
export default () => {
  if (watching || process.env[MARK]) return undefined; // `npm test` watches already
  watching = true;
  const leaks = watchForLeaks();
  return async () => {
    const left = await leaks();
    if (left.length > 0) process.stderr.write(`the tests left behind:\n${left.map((line) => `  ${line}\n`).join('')}`);
  };
};

const thingsOf = (run) => [
  ...processesOf(run).map((process) => `process ${process}`),
  ...cgroups().map((path) => `cgroup ${path}`),
  ...mounts().map((target) => `mount ${target}`),
  ...ours(namesIn('/run/netns')).map((name) => `network namespace ${name}`),
  ...loopDevices().map((device) => `loop device ${device}`),
  ...ours(namesIn(tmpdir())).map((name) => `temporary file ${join(tmpdir(), name)}`),
];

const ours = (names) => names.filter((name) => name.startsWith('dsec-'));

/** Every process with the run's mark, except this one, what runs the tests and their compiler. */
const processesOf = (run) =>
  namesIn('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => textOf(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${run}`))
    .map((pid) => ({ pid, command: textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim() }))
    .filter(({ command }) => command !== '' && !/node_modules\/(vitest|esbuild|@esbuild)|^node \(vitest/.test(command))
    .map(({ pid, command }) => `${pid} (${command.slice(0, 120)})`);

const cgroups = () => {
  const found = [];
  const walk = (directory, depth) => {
    for (const name of directoriesIn(directory)) {
      if (name.startsWith('dsec-')) found.push(join(directory, name));
      else if (depth > 1) walk(join(directory, name), depth - 1);
    }
  };
  walk('/sys/fs/cgroup', CGROUP_DEPTH);
  return found;
};

const mounts = () =>
  textOf('/proc/self/mounts')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((target) => target.includes('dsec'));

const loopDevices = () =>
  namesIn('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .map((name) => `${name} (${textOf(`/sys/block/${name}/loop/backing_file`).trim()})`)
    .filter((device) => device.includes('dsec'));

const namesIn = (directory) => attempt(() => readdirSync(directory), []);
const directoriesIn = (directory) =>
  attempt(() => readdirSync(directory, { withFileTypes: true }), [])
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const textOf = (file) => attempt(() => readFileSync(file, 'utf8'), '');

/** Entries of /proc and /sys vanish while they are read. */
const attempt = (read, otherwise) => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};
