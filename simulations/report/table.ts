/** What a person sees of a run: progress while it goes on, a table at its end. */
import Table from 'cli-table3';
import type { Figures } from '../scenarios/figures.ts';
import type { Run, RunResult } from '../scenarios/run.ts';

const PROGRESS_EVERY_MS = 1_000;
const grouped = (n: number): string => Math.round(n).toLocaleString('en-US');

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

/** One line to stderr, now and then. */
export const progressTo = (write: (text: string) => void, clock: () => number): ((run: Run, figures: Figures) => void) => {
  let saidAt = 0;
  return ({ nowMs, trace }, figures) => {
    const now = clock();
    if (now - saidAt < PROGRESS_EVERY_MS) return;
    saidAt = now;
    const row = figures.rows.at(-1);
    write(`  ${grouped(nowMs / 1_000)} s virtual · ${grouped(trace.steps)} steps · ${grouped(row?.live ?? 0)} live · ${grouped(row?.queued ?? 0)} queued\n`);
  };
};

/** The same as one object, for programs. Times in ms, shares 0…1. */
export const recordOf = (scenario: string, result: RunResult & { readonly figures?: Figures }, wallMs: number, rssMib: number): object => {
  const { seed, hash, steps, virtualMs, violation, figures } = result;
  const run = { scenario, seed, hash, steps, virtualMs, wallMs: Math.round(wallMs), rssMib: Math.round(rssMib), violation: violation?.message ?? null };
  if (!figures) return run;
  const { peakLive, started, ended, lost, overflowed, admitted, waitedForLayers, latencies, peakCpuUse, peakMemoryUse } = figures;
  return {
    ...run,
    ...{ peakLive, started, ended, lost, overflowed, admitted, waitedForLayers, peakCpuUse, peakMemoryUse },
    ...{ startP50Ms: latencies.quantile(0.5), startP99Ms: latencies.quantile(0.99) },
    refusals: Object.fromEntries(figures.refusals),
    failures: Object.fromEntries(figures.failures),
    maxOverMean: figures.rows.at(-1)?.maxOverMean ?? 1,
  };
};

export const summaryOf = (result: RunResult & { readonly figures: Figures }, wallMs: number, rssMib: number): string => {
  const { figures } = result;
  const last = figures.rows.at(-1);
  const table = new Table({ style: { head: [], border: [] } });
  const counts = (map: ReadonlyMap<string, number>): string => [...map].map(([code, n]) => `${code} ${grouped(n)}`).join(', ') || 'none';
  table.push(
    ['seed', result.seed],
    ['trace hash', result.hash],
    ['steps', grouped(result.steps)],
    ['virtual time', `${grouped(result.virtualMs / 1_000)} s`],
    ['wall time, RSS', `${(wallMs / 1_000).toFixed(1)} s, ${grouped(rssMib)} MiB`],
    ['live at most', grouped(figures.peakLive)],
    ['started, ended, lost', `${grouped(figures.started)}, ${grouped(figures.ended)}, ${grouped(figures.lost)}`],
    ...(figures.overflowed > 0 ? [['sent to the cloud', grouped(figures.overflowed)]] : []),
    ['asked → running', `p50 ${grouped(figures.latencies.quantile(0.5))} ms, p99 ${grouped(figures.latencies.quantile(0.99))} ms`],
    ['really used of the fullest machine, at most', `${percent(figures.peakCpuUse)} of its cores, ${percent(figures.peakMemoryUse)} of its memory`],
    ...(figures.waitedForLayers > 0 ? [['layers at hand', `${percent(1 - figures.waitedForLayers / figures.admitted)} of the sandboxes`]] : []),
    ['refused by nodes', counts(figures.refusals)],
    ['ended with', counts(figures.failures)],
    ['fullest node ÷ mean, at the end', (last?.maxOverMean ?? 1).toFixed(3)],
    ['invariants', result.violation ? `BROKEN: ${result.violation.message}` : 'hold'],
  );
  return table.toString();
};
