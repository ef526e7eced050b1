/**
 * Leak check around a test run: what the tests started, mounted or made must be gone when they end.
 *
 * Only what this run made counts, whoever else works on this machine. A process is ours when it carries the run's mark in its
 * environment. Temporary files lie in a directory of the run's own, so mounts and loop devices are ours when they lie there. A control
 * group or a named network namespace counts when it is new, carries the platform's name, and no living process of others names it.
 * A run that is killed does not get to look; then `undertaker.mjs` cleans up. `npm test` fails on a leak (`check.mjs`); a run of single files only prints it (the default export, vitest's global set-up).
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hire, MARK } from './undertaker.mjs';
import { attempt, directoriesIn, namesIn, textOf } from './vanishing.mjs';

/** The kernel tears namespaces and control groups down in its own time. */
const SETTLE_MS = 5_000;
const CGROUP_DEPTH = 3;

/**
 * Starts watching; the result tells, after the run, what is left: one line per thing. Processes started from now on inherit the mark
 * and the directory for temporary files.
 */
export const watchForLeaks = ({ settleMs = SETTLE_MS } = {}) => {
  process.env[MARK] ??= randomBytes(8).toString('hex');
  // short: paths of unix sockets begin with it, and have 108 bytes
  const directory = join(tmpdir(), `dsec-r${process.pid}`);
  mkdirSync(directory, { recursive: true });
  process.env['TMPDIR'] = directory;
  const run = { mark: process.env[MARK], directory };
  const before = new Set(thingsOf(run));
  const dismissUndertaker = hire(run);
  return async () => {
    const until = performance.now() + settleMs;
    for (;;) {
      const left = thingsOf(run).filter((thing) => !before.has(thing));
      if (left.length > 0 && performance.now() < until) {
        await delay(100);
        continue;
      }
      dismissUndertaker();
      attempt(() => rmdirSync(directory)); // keeps what was left behind
      return left;
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

const thingsOf = ({ mark, directory }) => {
  const { ours, others } = processes(mark);
  const isTheirs = (name) => others.some((command) => command.includes(name));
  return [
    ...ours.map((process) => `process ${process}`),
    ...cgroups()
      .filter((path) => !isTheirs(basename(path)))
      .map((path) => `cgroup ${path}`),
    ...mountsIn(directory).map((target) => `mount ${target}`),
    ...namesIn('/run/netns')
      .filter((name) => name.startsWith('dsec-') && !isTheirs(name))
      .map((name) => `network namespace ${name}`),
    ...loopDevicesOn(directory).map((device) => `loop device ${device}`),
    ...namesIn(directory)
      .filter((name) => name.startsWith('dsec-'))
      .map((name) => `temporary file ${join(directory, name)}`),
    ...['/run', '/dev/shm'].flatMap((memory) =>
      namesIn(memory)
        .filter((name) => name.startsWith('dsec-') && !isTheirs(name))
        .map((name) => `run directory ${join(memory, name)}`),
    ),
  ];
};

/** Those with the run's mark, except this one, what runs the tests and their compiler; and the command lines of everybody else. */
const processes = (mark) => {
  const all = namesIn('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => ({
      pid,
      command: textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim(),
      marked: textOf(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${mark}`),
    }))
    .filter(({ command }) => command !== '');
  return {
    ours: all
      .filter(({ marked, command }) => marked && !/node_modules\/(vitest|esbuild|@esbuild)|^node \(vitest/.test(command))
      .map(({ pid, command }) => `${pid} (${command.slice(0, 120)})`),
    others: all.filter(({ marked }) => !marked).map(({ command }) => command),
  };
};

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

const mountsIn = (directory) =>
  textOf('/proc/self/mounts')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((target) => target.startsWith(`${directory}/`));

const loopDevicesOn = (directory) =>
  namesIn('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .map((name) => `${name} (${textOf(`/sys/block/${name}/loop/backing_file`).trim()})`)
    .filter((device) => device.includes(`${directory}/`));
