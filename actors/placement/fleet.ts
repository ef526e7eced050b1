/**
 * The fleet as this process sees it: the newest beat of every Edge, with this process's own decisions that no beat can show
 * yet laid over it. Holds no truth: it is folded anew from beats by whoever needs it, and is full again after one second.
 *
 * Time comes in as data. Two placements do not see each other's decisions; sampling keeps them from choosing alike, and the
 * Edge has the final say.
 * @paper §3.2 §7
 */
import type { Beat, Capacity } from '#bus/edge/schema.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { Backend, SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CpuMillis, MiB, TimestampMs } from '#bus/units.ts';
import { judgeBeat, type NodeHealth } from '../watcher/health.ts';
import { FLEET_LIMITS } from './limits.ts';

/** A node that may be chosen: fresh and accepting. `used` includes what was decided but not seen in a beat yet. */
export type FleetNode = {
  readonly edge: EdgeName;
  readonly backends: readonly Backend[];
  readonly capacity: Capacity;
  readonly used: Capacity;
  /** What the newest beat itself said; less than `used` where decisions are laid over it. */
  readonly seen?: Capacity;
};
export type FleetView = readonly FleetNode[];

type Decided = {
  readonly at: TimestampMs;
  readonly sandboxes: number;
  readonly memoryMiB: number;
  readonly cpuMillis: number;
  readonly pids: number;
  readonly diskMiB: number;
};
/** `node` is what `view` shows, made anew only after a beat or a decision. */
type Known = { beat: Beat; receivedAt: TimestampMs; health: NodeHealth; decided: Decided[]; node: FleetNode };

export class Fleet {
  readonly #nodes = new Map<EdgeName, Known>();

  /** Takes a beat in; `at` is this process's own time, because the clocks of nodes differ. */
  observe(beat: Beat, at: TimestampMs): void {
    const known = this.#nodes.get(beat.edge);
    if (!known) {
      this.#makeRoom(at);
      if (this.#nodes.size < FLEET_LIMITS.nodes)
        this.#nodes.set(beat.edge, { beat, receivedAt: at, health: judgeBeat(undefined, beat, at, at), decided: [], node: nodeOf(beat, []) });
      return;
    }
    if (isOlder(beat, known.beat)) return; // from a process that was replaced, or overtaken on the way
    known.beat = beat;
    known.receivedAt = at;
    known.health = judgeBeat(known.health, beat, at, at);
    known.decided = known.decided.filter((d) => at < d.at + FLEET_LIMITS.settleMs);
    known.node = nodeOf(beat, known.decided);
  }

  /** Remembers what was just sent to a node, until its beats show it. */
  noteAssigned(edge: EdgeName, count: number, { limits }: SandboxSpec, at: TimestampMs): void {
    const known = this.#nodes.get(edge);
    if (!known) return;
    const { memoryMiB, cpuMillis, pids, diskMiB } = limits;
    const decision: Decided = {
      at,
      sandboxes: count,
      memoryMiB: count * memoryMiB,
      cpuMillis: count * cpuMillis,
      pids: count * pids,
      diskMiB: count * (diskMiB ?? 0),
    };
    known.decided.push(decision);
    known.node = { ...known.node, used: laidOver(known.node.used, decision) };
    if (known.decided.length <= FLEET_LIMITS.decisionsPerNode) return;
    const [oldest, next, ...rest] = known.decided;
    if (oldest && next) known.decided = [{ ...sum(oldest, next), at: next.at }, ...rest];
  }

  hasCandidates(at: number): boolean {
    for (const known of this.#nodes.values()) if (isCandidate(known, at)) return true;
    return false;
  }

  /** Every node that may be chosen has been heard since `since`: what is said of their room is no older than that. */
  isHeardSince(since: number, at: number): boolean {
    for (const known of this.#nodes.values()) if (isCandidate(known, at) && known.receivedAt < since) return false;
    return true;
  }

  /** Suspect nodes are offered only while there is no other. */
  view(at: number): FleetView {
    const candidates = [...this.#nodes.values()].filter((known) => isCandidate(known, at));
    const healthy = candidates.filter(({ health }) => health.health === 'healthy');
    return (healthy.length > 0 ? healthy : candidates).map(({ node }) => node);
  }

  /** Nodes that fell silent long ago give way to new ones. */
  #makeRoom(at: TimestampMs): void {
    if (this.#nodes.size < FLEET_LIMITS.nodes) return;
    for (const [edge, known] of this.#nodes) if (!isFresh(known, at)) this.#nodes.delete(edge);
  }
}

/** By number within a generation: the clock of a node may be set back. */
const isOlder = (beat: Beat, known: Beat): boolean => {
  if (beat.generation !== known.generation) return beat.generation < known.generation;
  return beat.sequence > 0 ? beat.sequence < known.sequence : beat.at < known.at;
};
const isFresh = ({ receivedAt }: Known, at: number): boolean => at - receivedAt <= FLEET_LIMITS.freshMs;
const isCandidate = (known: Known, at: number): boolean => known.beat.accepting && isFresh(known, at);

const nodeOf = ({ edge, backends, capacity, used }: Beat, decided: readonly Decided[]): FleetNode => ({
  edge,
  backends,
  capacity,
  used: decided.reduce(laidOver, used),
  seen: used,
});

const sum = <T extends Omit<Decided, 'at'>>(a: T, b: Omit<Decided, 'at'>) => ({
  ...a,
  sandboxes: a.sandboxes + b.sandboxes,
  memoryMiB: a.memoryMiB + b.memoryMiB,
  cpuMillis: a.cpuMillis + b.cpuMillis,
  pids: a.pids + b.pids,
  diskMiB: a.diskMiB + b.diskMiB,
});
const laidOver = (used: Capacity, decided: Decided): Capacity => {
  const { memoryMiB, cpuMillis, diskMiB, ...rest } = sum(used, decided);
  return { ...rest, memoryMiB: memoryMiB as MiB, cpuMillis: cpuMillis as CpuMillis, diskMiB: diskMiB as MiB };
};
