/** What `dsec top` shows of a fleet: text, cut to a terminal. Pure. */
import type { FleetEdge } from '#bus/api/fleet.ts';
import type { Fleet } from '../admin.ts';
import { printable, tableText } from './output.ts';

export type Size = { readonly columns: number; readonly rows: number };

const MIB_PER_GIB = 1_024;
const MILLIS = 1_000;

/** Lines for the whole screen; those that need somebody's eye come first, what does not fit is counted. Without a size: everything. */
export const topScreen = (fleet: Fleet, size: Size | undefined, note = ''): readonly string[] => {
  const head = [...headWithin(headOf(fleet), size), note];
  const table = tableFitting([...fleet.edges].sort(byNeed), size?.columns);
  const room = size ? Math.max(1, size.rows - head.length - 2) : table.length;
  const hidden = Math.max(0, table.length - 1 - room);
  const lines = [...head, ...table.slice(0, 1 + room), ...(hidden > 0 ? [`… and ${hidden} more; --json shows all`] : [])];
  return size ? lines.map((line) => [...line].slice(0, size.columns).join('')) : lines;
};

/** Nodes that need an eye come before whole lines above them: on a low screen each line of the head is cut instead. */
const headWithin = (parts: readonly (readonly string[])[], size: Size | undefined): string[] => {
  const whole = parts.flatMap((line) => wrapped(line, size?.columns));
  return size && whole.length > size.rows / 2 ? parts.flatMap((line) => wrapped(line)) : whole;
};

type Column = { readonly head: string; readonly show: (e: FleetEdge) => unknown /** The first to go where the terminal is narrow. */; readonly rank: number };
const COLUMNS: readonly Column[] = [
  { head: 'EDGE', rank: 0, show: (e) => e.edge },
  {
    head: 'HEALTH',
    rank: 0,
    show: (e) => (e.health === 'healthy' || e.health === 'silent' || e.conditions.length === 0 ? e.health : `${e.health} (${e.conditions.join(',')})`),
  },
  { head: 'TAKES', rank: 1, show: (e) => takes(e) },
  { head: 'SANDBOXES', rank: 0, show: (e) => of(e.used?.sandboxes, e.capacity.sandboxes, String) },
  { head: 'CPU', rank: 3, show: (e) => of(e.used?.cpuMillis, e.capacity.cpuMillis, cores, e.machine?.cpuMillis) },
  { head: 'MEMORY GiB', rank: 2, show: (e) => of(e.used?.memoryMiB, e.capacity.memoryMiB, gib, e.machine?.memoryMiB) },
  { head: 'DISK GiB', rank: 5, show: (e) => of(e.used?.diskMiB, e.capacity.diskMiB, gib, e.machine?.diskMiB) },
  { head: 'GEN', rank: 6, show: (e) => e.generation },
  { head: 'BEAT', rank: 4, show: (e) => (e.beatAgeMs === null ? 'never' : `${(e.beatAgeMs / 1_000).toFixed(1)}s`) },
  { head: 'RUNNING', rank: 0, show: (e) => runningOf(e) },
];

/** Leaves columns out, the least needed first, until all but the last, which may be cut, stand in the terminal. */
const tableFitting = (edges: readonly FleetEdge[], columns: number | undefined): string[] => {
  for (let rank = 7; ; rank -= 1) {
    const shown = COLUMNS.filter((column) => column.rank < rank);
    const table = tableText(
      shown.map(({ head }) => head),
      edges.map((edge) => shown.map(({ show }) => show(edge))),
    ).split('\n');
    if (columns === undefined || rank === 1 || (table[0]?.indexOf('RUNNING') ?? 0) + 'RUNNING'.length <= columns) return table;
  }
};

/** Parts of one line, or of as many as the terminal needs for them. */
const wrapped = (parts: readonly string[], columns = Number.POSITIVE_INFINITY): string[] => {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = lines.length === 0 ? part : `${lines.at(-1)} · ${part}`;
    if (lines.length > 0 && [...longer].length <= columns) lines.pop();
    lines.push([...longer].length <= columns || lines.length === 0 ? longer : part);
  }
  return lines;
};

const headOf = ({ at, totals, rates, commandsStored }: Fleet): string[][] => {
  const { used, capacity, machine } = totals;
  const health = Object.entries(totals.byHealth).filter(([, nodes]) => nodes > 0);
  const rejected = Object.entries(rates.rejected).filter(([, perSecond]) => perSecond > 0);
  const resource = (name: string, unit: string, key: keyof NonNullable<typeof machine>, show: (amount: number) => string): string =>
    `${name} ${of(used[key], capacity[key], show, machine?.[key])}${unit}`;
  return [
    [
      `dsec top · ${new Date(at).toISOString()}`,
      `nodes: ${health.map(([name, nodes]) => `${nodes} ${name}`).join(', ') || 'none'}; ${totals.accepting} of ${totals.edges} take sandboxes`,
    ],
    [
      `${machine ? 'reserved/offered/real' : 'reserved/offered'}: sandboxes ${used.sandboxes}/${capacity.sandboxes}`,
      resource('cpu', '', 'cpuMillis', cores),
      resource('memory', ' GiB', 'memoryMiB', gib),
      resource('disk', ' GiB', 'diskMiB', gib),
    ],
    ...overCommitted(fleetShares(totals)),
    [
      `per second: ${rates.asked.toFixed(1)} asked, ${rates.started.toFixed(1)} started, ${rates.failed.toFixed(1)} failed`,
      `rejected: ${rejected.map(([code, n]) => `${code} ${n.toFixed(1)}`).join(', ') || 'none'}`,
      `commands in the queue: ${commandsStored ?? 'unknown'}`,
    ],
  ];
};

type Share = { readonly name: string; readonly offered: number; readonly reserved: number };
const fleetShares = ({ used, capacity, machine }: Fleet['totals']): Share[] => {
  if (!machine) return [];
  const keys = [
    ['cpu', 'cpuMillis'],
    ['memory', 'memoryMiB'],
    ['disk', 'diskMiB'],
  ] as const;
  return keys.filter(([, key]) => machine[key] > 0).map(([name, key]) => ({ name, offered: capacity[key] / machine[key], reserved: used[key] / machine[key] }));
};

/** More is offered than there is, because sandboxes rarely use what they reserve; what is reserved beyond what there is may one day be asked for. */
const overCommitted = (shares: readonly Share[]): string[][] => {
  const over = shares.filter(({ offered }) => offered > 1);
  if (over.length === 0) return [];
  return [['over-committed', ...over.map(({ name, offered, reserved }) => `${name} offered ×${times(offered)}, reserved ${Math.round(reserved * 100)} %`)]];
};
const times = (n: number): string => (n >= 10 ? n.toFixed(0) : n.toFixed(1));

const takes = ({ accepting, cordoned }: FleetEdge): string => {
  if (cordoned !== null) return `cordoned: ${printable(cordoned)}`;
  return accepting ? 'yes' : 'no';
};

const runningOf = ({ backends, running, others, simulated }: FleetEdge): string => {
  const projects = [...running.map(({ project, sandboxes }) => `${project} ${sandboxes}`), ...(others > 0 ? [`others ${others}`] : [])];
  return projects.length === 0 ? '-' : `${simulated ? 'simulated' : backends.join('+')}: ${projects.join(', ')}`;
};

const of = (used: number | undefined, capacity: number, show: (amount: number) => string, real?: number): string =>
  `${used === undefined ? '?' : show(used)}/${show(capacity)}${real === undefined ? '' : `/${show(real)}`}`;
const gib = (mib: number): string => (mib / MIB_PER_GIB).toFixed(1);
const cores = (millis: number): string => (millis / MILLIS).toFixed(1);

const NEED: Readonly<Record<FleetEdge['health'], number>> = { lost: 0, silent: 1, suspect: 2, healthy: 3 };
const byNeed = (a: FleetEdge, b: FleetEdge): number => NEED[a.health] - NEED[b.health] || (a.edge < b.edge ? -1 : 1);
