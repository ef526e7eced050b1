/** Processor time that a platform's processes spend: what a busy machine does not falsify, unlike time on the clock. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Platform } from '#runtime/roles/up/platform.ts';

/** `sandboxes`: the launcher's children that it has reaped, so all of Aether and of the commands of ended sandboxes. */
export const COST_OWNERS = ['bus', 'control', 'edge', 'client', 'launcher', 'sandboxes'] as const;
export type Costs = Readonly<Record<(typeof COST_OWNERS)[number], number>>;

const TICKS_PER_SECOND = 100;
const MS_PER_TICK = 1_000 / TICKS_PER_SECOND;
/** Fields of `/proc/<pid>/stat` behind the name in parentheses, counted from the state. */
const STAT = { utime: 11, stime: 12, cutime: 13, cstime: 14 } as const;

const statOf = (pid: number | string): string[] => {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
};
const sum = (pid: number, ...fields: readonly number[]): number => fields.reduce((total, field) => total + Number(statOf(pid)[field]), 0) * MS_PER_TICK;

/** User and system time of a process since it began. */
export const processorMs = (pid: number): number => sum(pid, STAT.utime, STAT.stime);

const launcherPid = (runDir: string): number => {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (args[0]?.endsWith('dsec-launcher') && args[args.indexOf('--run') + 1] === runDir) return Number(name);
    } catch {
      // it ended in between
    }
  }
  throw new Error(`no launcher serves ${runDir}`);
};

/** Milliseconds of processor time since each process began; the difference of two looks is what lies between. */
export const costMeter = (platform: Platform): (() => Costs) => {
  const { bus, control = 0, edge = 0 } = platform.pids();
  const launcher = launcherPid(platform.config.runDir);
  return () => ({
    bus: processorMs(bus),
    control: processorMs(control),
    edge: processorMs(edge),
    client: processorMs(process.pid),
    launcher: processorMs(launcher),
    sandboxes: sum(launcher, STAT.cutime, STAT.cstime),
  });
};

/** What one of `count` pieces of work cost between two looks. */
export const costOfOne = (before: Costs, after: Costs, count: number): Costs =>
  Object.fromEntries(COST_OWNERS.map((owner) => [owner, (after[owner] - before[owner]) / count])) as Costs;
