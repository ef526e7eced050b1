/** What a run measures over virtual time, in bounded memory: one row per tick, histograms by powers of √2. */
import type { Capacity } from '#bus/edge/schema.ts';
import type { Observer } from '../hosts/observer.ts';
import type { Process } from '../ports/machine.ts';
import { realUseOf } from '../workload/use.ts';
import { PAPER_MACHINE } from './capacity.ts';
import type { Run } from './run.ts';

export type Row = {
  readonly atMs: number;
  readonly live: number;
  readonly maxOverMean: number;
  readonly queued: number;
  readonly refused: number;
  readonly startedPerS: number;
  readonly latencyP50Ms: number;
  readonly latencyP99Ms: number;
  /** What the sandboxes of the fullest machine really take of its cores and memory, 0…1. @paper §4 */
  readonly cpuUse: number;
  readonly memoryUse: number;
};

/** Counts of values in classes that are √2 apart: any quantile within 20 %, whatever there are. */
export class Histogram {
  readonly #counts = new Map<number, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(value: number): void {
    const at = value < 1 ? 0 : Math.ceil(Math.log2(value) * 2);
    this.#counts.set(at, (this.#counts.get(at) ?? 0) + 1);
    this.#total += 1;
  }

  quantile(q: number): number {
    let left = q * this.#total;
    for (const at of [...this.#counts.keys()].sort((a, b) => a - b)) {
      left -= this.#counts.get(at) ?? 0;
      if (left <= 0) return 2 ** (at / 2);
    }
    return 0;
  }
}

export class Figures {
  readonly rows: Row[] = [];
  readonly latencies = new Histogram();
  #recent = new Histogram();
  readonly refusals = new Map<string, number>();
  readonly failures = new Map<string, number>();
  started = 0;
  ended = 0;
  lost = 0;
  /** Sent to the cloud instead of to a node. */
  overflowed = 0;
  peakLive = 0;
  peakCpuUse = 0;
  peakMemoryUse = 0;
  admitted = 0;
  /** … of which so many had to wait for layers. */
  waitedForLayers = 0;
  readonly #inUse = new Map<string, { cpuMillis: number; memoryKiB: number }>();
  #refused = 0;
  #startedBefore = 0;

  readonly observer: Partial<Observer> = {
    refused: (_, { code }) => {
      this.#refused += 1;
      count(this.refusals, code);
    },
    stored: (_, commit) => {
      for (const { type } of commit?.events ?? []) if (type === 'SandboxAdmitted') this.admitted += 1;
      if (commit?.events.at(-1)?.type === 'SandboxPreparing') this.waitedForLayers += 1; // otherwise it goes on in the same commit
    },
    born: ({ name }, process) => this.#uses(name, process, 1),
    gone: ({ name }, process) => this.#uses(name, process, -1),
  };

  #uses(machine: string, { id, limits }: Process, sign: 1 | -1): void {
    const use = realUseOf(id, limits);
    const sums = this.#inUse.get(machine) ?? { cpuMillis: 0, memoryKiB: 0 };
    sums.cpuMillis += sign * use.cpuMillis;
    sums.memoryKiB += sign * use.memoryKiB;
    this.#inUse.set(machine, sums);
  }

  running(latencyMs: number): void {
    this.started += 1;
    this.latencies.add(latencyMs);
    this.#recent.add(latencyMs);
  }

  over(state: 'ended' | 'refused' | 'lost', code: string | undefined): void {
    if (state === 'lost') this.lost += 1;
    else this.ended += 1;
    if (code) count(this.failures, code);
  }

  /** One row, of everything since the one before. */
  tick({ cluster, nowMs }: Run): void {
    const live = cluster.nodes.reduce((sum, { process, edge }) => sum + (process.alive ? edge.liveCount : 0), 0);
    this.peakLive = Math.max(this.peakLive, live);
    let [cpuMillis, memoryKiB] = [0, 0];
    for (const sums of this.#inUse.values()) {
      cpuMillis = Math.max(cpuMillis, sums.cpuMillis);
      memoryKiB = Math.max(memoryKiB, sums.memoryKiB);
    }
    const cpuUse = cpuMillis / (PAPER_MACHINE.cpus * 1_000);
    const memoryUse = memoryKiB / (PAPER_MACHINE.memoryMiB * 1_024);
    this.peakCpuUse = Math.max(this.peakCpuUse, cpuUse);
    this.peakMemoryUse = Math.max(this.peakMemoryUse, memoryUse);
    const spanMs = nowMs - (this.rows.at(-1)?.atMs ?? 0);
    this.rows.push({
      atMs: nowMs,
      live,
      maxOverMean: maxOverMeanOf(cluster),
      queued: cluster.ground.commands.store.size,
      refused: this.#refused,
      startedPerS: spanMs > 0 ? ((this.started - this.#startedBefore) * 1_000) / spanMs : 0,
      latencyP50Ms: this.#recent.quantile(0.5),
      latencyP99Ms: this.#recent.quantile(0.99),
      cpuUse,
      memoryUse,
    });
    this.#recent = new Histogram();
    this.#startedBefore = this.started;
  }
}

/** Mean load of living nodes, 0…1: what decides whether eligible creates go to the cloud. @paper §3.4 */
export const useOf = ({ nodes, o: { capacity } }: Run['cluster']): number => {
  const loads = nodes.filter(({ process }) => process.alive).map(({ edge }) => loadOf(edge.admission.used(), capacity));
  return loads.length === 0 ? 0 : loads.reduce((sum, load) => sum + load, 0) / loads.length;
};

/** Load of the fullest node ÷ mean load. A node's load is its fullest dimension, as placement sees it. */
export const maxOverMeanOf = ({ nodes, o: { capacity } }: Run['cluster']): number => {
  const loads = nodes.filter(({ process }) => process.alive).map(({ edge }) => loadOf(edge.admission.used(), capacity));
  const sum = loads.reduce((total, load) => total + load, 0);
  return sum === 0 ? 1 : (Math.max(...loads) * loads.length) / sum;
};

export const loadOf = (used: Capacity, capacity: Capacity): number =>
  Math.max(...(['sandboxes', 'memoryMiB', 'cpuMillis', 'pids', 'diskMiB'] as const).map((d) => used[d] / capacity[d]));

const count = (counts: Map<string, number>, code: string): void => void counts.set(code, (counts.get(code) ?? 0) + 1);
