/** Charts of a run over virtual time, as one SVG: what is live, how unevenly, what waits, what is refused, how long a create takes. */
import * as echarts from 'echarts';
import type { Row } from '../scenarios/figures.ts';

/** A value of null is no point: nothing was measured in that row. */
type Series = { readonly name: string; readonly of: (row: Row) => number | null };
type Panel = { readonly title: string; readonly unit: string; readonly series: readonly Series[]; readonly isDots?: boolean };
const ofStarted =
  (of: (row: Row) => number): Series['of'] =>
  (row) =>
    row.startedPerS > 0 ? of(row) : null;
const PANELS: readonly Panel[] = [
  { title: 'live sandboxes', unit: '', series: [{ name: 'live', of: ({ live }) => live }] },
  { title: 'load of the fullest node ÷ mean', unit: '×', series: [{ name: 'max/mean', of: ({ maxOverMean }) => maxOverMean }] },
  { title: 'commands waiting', unit: '', series: [{ name: 'queued', of: ({ queued }) => queued }] },
  { title: 'refused by admission, in all', unit: '', series: [{ name: 'refused', of: ({ refused }) => refused }] },
  { title: 'started per second', unit: '/s', series: [{ name: 'started', of: ({ startedPerS }) => startedPerS }] },
  {
    title: 'asked → running, where anything was started',
    unit: 'ms',
    isDots: true,
    series: [
      { name: 'p50', of: ofStarted(({ latencyP50Ms }) => latencyP50Ms) },
      { name: 'p99', of: ofStarted(({ latencyP99Ms }) => latencyP99Ms) },
    ],
  },
  {
    title: 'really used of the fullest machine',
    unit: '%',
    series: [
      { name: 'cores', of: ({ cpuUse }) => cpuUse * 100 },
      { name: 'memory', of: ({ memoryUse }) => memoryUse * 100 },
    ],
  },
];
const SIGNS: Readonly<Record<string, string>> = { '×': ' ×', '%': ' %', ms: ' ms' };
/** Longer runs are told in hours. */
const HOURS_ABOVE_MS = 7_200_000;
const [WIDTH, PANEL, GAP, LEFT] = [1_000, 150, 60, 90];

export const timeChart = (title: string, rows: readonly Row[]): string => {
  const top = (i: number) => 60 + i * (PANEL + GAP);
  const unit = (rows.at(-1)?.atMs ?? 0) > HOURS_ABOVE_MS ? { name: 'h', ms: 3_600_000 } : { name: 's', ms: 1_000 };
  const times = rows.map(({ atMs }) => round(atMs / unit.ms));
  return svg(60 + PANELS.length * (PANEL + GAP), {
    title: [
      { text: title, left: LEFT, top: 8 },
      ...PANELS.map((panel, i) => ({ text: panel.title, left: LEFT, top: top(i) - 26, textStyle: { fontSize: 13 } })),
    ],
    legend: PANELS.flatMap(({ series }, i) => (series.length > 1 ? [{ data: series.map(({ name }) => name), top: top(i) - 28, right: 30 }] : [])),
    grid: PANELS.map((_, i) => ({ left: LEFT, right: 30, top: top(i), height: PANEL })),
    xAxis: PANELS.map((_, i) => ({ gridIndex: i, type: 'value', min: 0, max: Math.ceil(times.at(-1) ?? 1), axisLabel: { formatter: `{value} ${unit.name}` } })),
    yAxis: PANELS.map(({ unit }, i) => ({ gridIndex: i, type: 'value', scale: unit === '×', axisLabel: { formatter: `{value}${SIGNS[unit] ?? ''}` } })),
    series: PANELS.flatMap((panel, i) =>
      panel.series.map(({ name, of }) => ({
        name,
        ...(panel.isDots ? { type: 'scatter', symbolSize: 3 } : { type: 'line', step: 'end', showSymbol: false }),
        xAxisIndex: i,
        yAxisIndex: i,
        data: rows.flatMap((row, n) => pointOf(times[n] as number, of(row))),
      })),
    ),
  });
};

/** One line per policy over an axis of settings; ours is bold, dashed ones count nothing that they have just decided. */
export const linesChart = (title: string, axis: string, settings: readonly string[], lines: ReadonlyMap<string, readonly number[]>): string =>
  svg(900, {
    title: { text: title, left: LEFT, top: 8 },
    grid: { left: LEFT, right: 190, top: 60, bottom: 60 },
    xAxis: { type: 'category', data: settings, name: axis, nameLocation: 'middle', nameGap: 32 },
    yAxis: { type: 'value', min: 1, axisLabel: { formatter: '{value} ×' } },
    series: [...lines].map(([name, data]) => ({
      name,
      type: 'line',
      data: data.map(round),
      lineStyle: { width: name === 'ours' ? 4 : 1.5, type: name === 'ours' || name.endsWith('+') ? 'solid' : 'dashed' },
      endLabel: { show: true, formatter: '{a}', color: 'inherit' },
      labelLayout: { moveOverlap: 'shiftY' },
    })),
  });

/** The library's own types leave file extensions out, so this module system does not find them; this is all that is used of it. */
type Chart = { setOption(option: object): void; renderToSVGString(): string; dispose(): void };
type Init = (element: null, theme: null, options: object) => Chart;
const { init } = echarts as unknown as { readonly init: Init };

const svg = (height: number, option: object): string => {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption({ animation: false, backgroundColor: '#ffffff', ...option });
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
};

const pointOf = (time: number, value: number | null): [number, number][] => (value === null ? [] : [[time, round(value)]]);
const round = (n: number): number => Math.round(n * 1_000) / 1_000;
