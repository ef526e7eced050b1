/** What `dsec top` shows of a fleet: text, cut to a terminal. Pure. */
import type { FleetEdge } from '#bus/api/fleet.ts';
import type { Fleet } from '../admin.ts';
import { printable, tableText } from './output.ts';

export type Size = { readonly columns: number; readonly rows: number };

const MIB_PER_GIB = 1_024;
const MILLIS = 1_000;

/** Lines for the whole screen; those that need somebody's eye come first, what does not fit is counted. Without a size: everything. */
export const topScreen = (fleet: Fleet, size: Size | undefined, note = ''): readonly string[] => {
  const head = [...headOf(fleet), note];
  const table = tableText(HEAD, [...fleet.edges].sort(byNeed).map(rowOf)).split('\n');
  const room = size ? Math.max(1, size.rows - head.length - 2) : table.length;
  const hidden = Math.max(0, table.length - 1 - room);
  const lines = [...head, ...table.slice(0, 1 + room), ...(hidden > 0 ? [`… and ${hidden} more; --json shows all`] : [])];
  return size ? lines.map((line) => [...line].slice(0, size.columns).join('')) : lines;
};

const HEAD = ['EDGE', 'HEALTH', 'TAKES', 'SANDBOXES', 'CPU', 'MEMORY GiB', 'DISK GiB', 'GEN', 'BEAT', 'RUNNING'];

const headOf = ({ at, totals, rates, commandsStored }: Fleet): string[] => {
  const health = Object.entries(totals.byHealth).filter(([, nodes]) => nodes > 0);
  const rejected = Object.entries(rates.rejected).filter(([, perSecond]) => perSecond > 0);
  return [
    `dsec top · ${new Date(at).toISOString()} · nodes: ${health.map(([name, nodes]) => `${nodes} ${name}`).join(', ') || 'none'}; ${totals.accepting} of ${totals.edges} take sandboxes`,
    `sandboxes ${totals.used.sandboxes}/${totals.capacity.sandboxes} · cpu ${cores(totals.used.cpuMillis)}/${cores(totals.capacity.cpuMillis)} · memory ${gib(totals.used.memoryMiB)}/${gib(totals.capacity.memoryMiB)} GiB · disk ${gib(totals.used.diskMiB)}/${gib(totals.capacity.diskMiB)} GiB`,
    `per second: ${rates.asked.toFixed(1)} asked, ${rates.started.toFixed(1)} started, ${rates.failed.toFixed(1)} failed · rejected: ${rejected.map(([code, n]) => `${code} ${n.toFixed(1)}`).join(', ') || 'none'} · commands in the queue: ${commandsStored ?? 'unknown'}`,
  ];
};

const rowOf = (e: FleetEdge): readonly unknown[] => [
  e.edge,
  e.health === 'healthy' || e.health === 'silent' || e.conditions.length === 0 ? e.health : `${e.health} (${e.conditions.join(',')})`,
  takes(e),
  of(e.used?.sandboxes, e.capacity.sandboxes, String),
  of(e.used?.cpuMillis, e.capacity.cpuMillis, cores),
  of(e.used?.memoryMiB, e.capacity.memoryMiB, gib),
  of(e.used?.diskMiB, e.capacity.diskMiB, gib),
  e.generation,
  e.beatAgeMs === null ? 'never' : `${(e.beatAgeMs / 1_000).toFixed(1)}s`,
  runningOf(e),
];

const takes = ({ accepting, cordoned }: FleetEdge): string => {
  if (cordoned !== null) return `cordoned: ${printable(cordoned)}`;
  return accepting ? 'yes' : 'no';
};

const runningOf = ({ backends, running, others, simulated }: FleetEdge): string => {
  const projects = [...running.map(({ project, sandboxes }) => `${project} ${sandboxes}`), ...(others > 0 ? [`others ${others}`] : [])];
  return projects.length === 0 ? '-' : `${simulated ? 'simulated' : backends.join('+')}: ${projects.join(', ')}`;
};

const of = (used: number | undefined, capacity: number, show: (amount: number) => string): string =>
  `${used === undefined ? '?' : show(used)}/${show(capacity)}`;
const gib = (mib: number): string => (mib / MIB_PER_GIB).toFixed(1);
const cores = (millis: number): string => (millis / MILLIS).toFixed(1);

const NEED: Readonly<Record<FleetEdge['health'], number>> = { lost: 0, silent: 1, suspect: 2, healthy: 3 };
const byNeed = (a: FleetEdge, b: FleetEdge): number => NEED[a.health] - NEED[b.health] || (a.edge < b.edge ? -1 : 1);
