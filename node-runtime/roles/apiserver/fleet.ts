/**
 * The fleet as this process hears it: beats, and the Edge actors' commits for those that are not heard. Holds no truth, and is whole a
 * second after its start. The same judgement as the watcher's; nothing is decided by it here.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { type FleetEdge, FleetHealth, FLEET_LIMITS, type FleetTotals } from '#bus/api/fleet.ts';
import type { ApiParsed, ApiResponse } from '#bus/api/schema.ts';
import type { Machine } from '#bus/edge/probes.ts';
import { Beat, type Capacity, type EdgeState } from '#bus/edge/schema.ts';
import { DsecError } from '#bus/errors.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { BEAT_FILTER } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import { judgeBeat, judgeSilence, type NodeHealth } from '#actors/watcher/health.ts';
import { HEALTH_POLICY } from '#actors/watcher/limits.ts';
import type { Caller } from './apiserver.ts';
import type { Rates } from './rates.ts';

export type FleetViewOptions = {
  readonly connection: NatsConnection;
  readonly clock: Clock;
  /** The project whose operators are the platform's. */
  readonly root: ProjectName;
  readonly edges: { all(): EdgeState[] };
  readonly rates: Rates;
  readonly commandsStored: () => Promise<number>;
};

type Heard = { readonly beat: Beat; readonly health: NodeHealth };

export class FleetView {
  readonly #o: FleetViewOptions;
  readonly #heard = new Map<EdgeName, Heard>();
  readonly #subscription: { unsubscribe(): void };

  constructor(options: FleetViewOptions) {
    this.#o = options;
    this.#subscription = options.connection.subscribe(BEAT_FILTER, {
      callback: (error, message) => {
        const beat = error ? undefined : Beat.safeParse(safeJson(message.data));
        if (beat?.success) this.#hear(beat.data);
      },
    });
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  /** Everybody's nodes are no project's: only operators of the first project see them. */
  async answer({ after, limit }: ApiParsed<'fleet'>, { project }: Caller): Promise<ApiResponse<'fleet'>> {
    const { root, clock, rates, commandsStored } = this.#o;
    if (project !== root) throw DsecError.of('FORBIDDEN', `the fleet serves every project; ask in project ${root}, as its operator`);
    const all = this.#all();
    const rest = after === undefined ? all : all.filter(({ edge }) => edge > after);
    const edges = rest.slice(0, limit);
    return {
      at: clock.now(),
      edges,
      next: rest.length > limit ? (edges.at(-1)?.edge ?? null) : null,
      totals: totalsOf(all),
      rates: rates.perSecond(),
      commandsStored: await commandsStored().catch(() => null),
    };
  }

  #hear(beat: Beat): void {
    const before = this.#heard.get(beat.edge);
    if (!before && this.#heard.size >= HEALTH_POLICY.nodes) return;
    if (before && beat.generation < before.beat.generation) return;
    const { clock } = this.#o;
    this.#heard.set(beat.edge, { beat, health: judgeBeat(before?.health, beat, clock.monotonicMs(), clock.now()) });
  }

  /** By name; retired ones are left out. */
  #all(): FleetEdge[] {
    const atMs = this.#o.clock.monotonicMs();
    return this.#o.edges
      .all()
      .filter(({ status }) => status !== 'retired')
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((state) => edgeOf(state, this.#heard.get(state.name), atMs));
  }
}

const edgeOf = (state: EdgeState, heard: Heard | undefined, atMs: number): FleetEdge => {
  const health = heard && judgeSilence(heard.health, atMs);
  const isHeard = health !== undefined && !health.conditions.includes('silent');
  const beat = heard?.beat;
  const running = Object.entries((isHeard && beat?.running) || {}).sort(([, a], [, b]) => b - a);
  return {
    edge: state.name,
    health: healthOf(state, isHeard ? health : undefined),
    conditions: [...(health?.conditions ?? ['silent'])],
    generation: state.generation,
    accepting: isHeard && beat?.accepting === true,
    cordoned: state.cordoned,
    backends: beat?.backends ?? state.backends,
    simulated: beat?.simulated ?? false,
    capacity: beat?.capacity ?? state.capacity,
    machine: beat?.simulated ? null : (beat?.probes?.machine ?? null),
    used: (isHeard && beat?.used) || null,
    running: running.slice(0, FLEET_LIMITS.projects).map(([project, sandboxes]) => ({ project: project as ProjectName, sandboxes })),
    others: running.slice(FLEET_LIMITS.projects).reduce((sum, [, sandboxes]) => sum + sandboxes, 0),
    reservedFor: beat?.reservedFor ?? null,
    beatAgeMs: heard ? Math.max(0, Math.round(atMs - heard.health.heardAtMs)) : null,
  };
};

const healthOf = ({ status }: EdgeState, heard: NodeHealth | undefined): FleetHealth => {
  if (status === 'lost') return 'lost';
  return heard ? heard.health : 'silent';
};

const NOTHING: Capacity = { sandboxes: 0, memoryMiB: 0, cpuMillis: 0, pids: 0, diskMiB: 0, descriptors: 0 } as Capacity;
const plus = (a: Capacity, b: Capacity): Capacity =>
  Object.fromEntries(Object.entries(a).map(([dimension, amount]) => [dimension, amount + b[dimension as keyof Capacity]])) as Capacity;

/** Capacity counts where it can be used: on nodes that are heard. */
const totalsOf = (all: readonly FleetEdge[]): FleetTotals => ({
  edges: all.length,
  byHealth: Object.fromEntries(FleetHealth.options.map((health) => [health, all.filter((edge) => edge.health === health).length])) as FleetTotals['byHealth'],
  accepting: all.filter(({ accepting }) => accepting).length,
  capacity: all.filter(({ used }) => used).reduce((sum, { capacity }) => plus(sum, capacity), NOTHING),
  used: all.reduce((sum, { used }) => (used ? plus(sum, used) : sum), NOTHING),
  machine: all
    .flatMap(({ used, machine }) => (used && machine ? [machine] : []))
    .reduce<Machine | null>((sum, machine) => (sum ? addMachines(sum, machine) : machine), null),
});

const addMachines = (a: Machine, b: Machine): Machine => ({
  memoryMiB: (a.memoryMiB + b.memoryMiB) as Machine['memoryMiB'],
  cpuMillis: (a.cpuMillis + b.cpuMillis) as Machine['cpuMillis'],
  diskMiB: (a.diskMiB + b.diskMiB) as Machine['diskMiB'],
});

const safeJson = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
};
