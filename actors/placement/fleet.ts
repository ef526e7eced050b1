/**
 * The fleet as this process sees it: the newest beat of every Edge, with this process's own decisions that no beat can show
 * yet laid over it, and how often each node has failed of late. Holds no truth: it is folded anew from beats by whoever needs
 * it, and is full again after one second.
 *
 * Time comes in as data. Two placements do not see each other's decisions: each takes it that the others choose as it does itself
 * (`choose`), and the Edge has the final say.
 * @paper §3.2 §7
 */
import type { Beat, Capacity } from '#bus/edge/schema.ts';
import type { ErrorCode, WireError } from '#bus/errors.ts';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import type { Backend, SandboxSpec } from '#bus/sandbox/spec.ts';
import type { CpuMillis, MiB, TimestampMs } from '#bus/units.ts';
import { judgeBeat, type NodeHealth } from '../watcher/health.ts';
import type { Tenancy } from './isolation.ts';
import { FLEET_LIMITS } from './limits.ts';

/** A node that may be chosen: fresh and accepting. `used` and the tenancy include what was decided but not seen in a beat yet. */
export type FleetNode = Tenancy & {
  readonly edge: EdgeName;
  readonly backends: readonly Backend[];
  readonly capacity: Capacity;
  readonly used: Capacity;
  /** What the newest beat itself said; less than `used` where decisions are laid over it. */
  readonly seen?: Capacity;
  readonly labels: Readonly<Record<string, string>>;
  /** Layers that lie ready there. */
  readonly layers: ReadonlySet<string>;
  /** Failures of late; each counts half as much after every half-life. */
  readonly failures: number;
};
export type FleetView = readonly FleetNode[];

type Amounts = { readonly sandboxes: number; readonly memoryMiB: number; readonly cpuMillis: number; readonly pids: number; readonly diskMiB: number };
/** `sequence`: its place in COMMANDS once it was forwarded; beats say up to which place they reflect. */
type Decided = Amounts & { readonly at: TimestampMs; sequence: number | null; readonly project: ProjectName; readonly isApart: boolean };
/** `node` is what `view` shows, made anew only after a beat or a decision. */
type Known = { beat: Beat; receivedAt: TimestampMs; health: NodeHealth; decided: Decided[]; node: FleetNode; failures: number; failedAt: TimestampMs };

/** A decision that was noted when it was made: tell it its place in the queue, or that nothing came of it. */
export type DecisionMark = { readonly forwarded: (sequence: number) => void; readonly cancel: () => void };
const NO_MARK: DecisionMark = { forwarded: () => {}, cancel: () => {} };

export class Fleet {
  /** Placements that choose at a time, this one among them: none sees what the others decide until beats show it. */
  placements = 1;
  readonly #nodes = new Map<EdgeName, Known>();

  /** Takes a beat in; `at` is this process's own time, because the clocks of nodes differ. */
  observe(beat: Beat, at: TimestampMs): void {
    const known = this.#nodes.get(beat.edge);
    if (!known) {
      this.#makeRoom(at);
      if (this.#nodes.size >= FLEET_LIMITS.nodes) return;
      const node = nodeOf(beat, [], new Set(beat.layers));
      this.#nodes.set(beat.edge, { beat, receivedAt: at, health: judgeBeat(undefined, beat, at, at), decided: [], node, failures: 0, failedAt: at });
      return;
    }
    if (isOlder(beat, known.beat)) return; // from a process that was replaced, or overtaken on the way
    const sameLayers = beat.layers.length === known.beat.layers.length && beat.layers.every((layer, n) => layer === known.beat.layers[n]);
    known.beat = beat;
    known.receivedAt = at;
    known.health = judgeBeat(known.health, beat, at, at);
    known.decided = known.decided.filter((d) => !isReflected(d, beat, at));
    known.node = nodeOf(beat, known.decided, sameLayers ? known.node.layers : new Set(beat.layers));
  }

  /** Remembers what is just being given to a node, until its beats show it: noted with the choice, so that the next choice sees it. */
  noteAssigned(edge: EdgeName, count: number, { limits, isolation }: SandboxSpec, project: ProjectName, at: TimestampMs): DecisionMark {
    const known = this.#nodes.get(edge);
    if (!known) return NO_MARK;
    const { memoryMiB, cpuMillis, pids, diskMiB } = limits;
    const decision: Decided = {
      at,
      sequence: null,
      project,
      isApart: isolation === 'requireApart',
      sandboxes: count,
      memoryMiB: count * memoryMiB,
      cpuMillis: count * cpuMillis,
      pids: count * pids,
      diskMiB: count * (diskMiB ?? 0),
    };
    known.decided.push(decision);
    known.node = withDecision(known.node, decision);
    if (known.decided.length > FLEET_LIMITS.decisionsPerNode) known.decided = mergeOldest(known.decided);
    return {
      forwarded: (sequence) => {
        decision.sequence = sequence;
      },
      cancel: () => {
        known.decided = known.decided.filter((other) => other !== decision);
        known.node = nodeOf(known.beat, known.decided, known.node.layers);
      },
    };
  }

  /** A node refused, or what it took failed there: it is avoided for a while, the longer the more often that happens. */
  noteFailed(edge: EdgeName, error: WireError, at: TimestampMs): void {
    const known = this.#nodes.get(edge);
    const weight = weightOf(error);
    if (!known || weight === 0) return;
    known.failures = Math.min(FLEET_LIMITS.failuresMax, decayed(known, at) + weight);
    known.failedAt = at;
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
    return (healthy.length > 0 ? healthy : candidates).map((known) => (known.failures > 0 ? { ...known.node, failures: decayed(known, at) } : known.node));
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
const decayed = ({ failures, failedAt }: Known, at: number): number => failures * 0.5 ** (Math.max(0, at - failedAt) / FLEET_LIMITS.failureHalfLifeMs);

/** A beat that knows of a place in the queue reflects what lies up to there; of everything else only time tells. */
const isReflected = ({ at, sequence }: Decided, { admittedThrough }: Beat, now: number): boolean => {
  if (sequence !== null && admittedThrough > 0) return sequence <= admittedThrough || now >= at + FLEET_LIMITS.settleAtMostMs;
  return now >= at + FLEET_LIMITS.settleMs;
};

const CAPACITY_CODES: ReadonlySet<ErrorCode> = new Set(['NODE_FULL', 'NO_CAPACITY', 'OVERLOADED']);
/** What is wrong with the request says nothing about the node. */
const weightOf = ({ code, fault }: WireError): number => {
  if (CAPACITY_CODES.has(code)) return FLEET_LIMITS.fullWeight;
  return fault === 'infra' && code !== 'DEADLINE_EXCEEDED' ? 1 : 0;
};

const nodeOf = ({ edge, backends, capacity, used, labels, running, reservedFor }: Beat, decided: readonly Decided[], layers: ReadonlySet<string>): FleetNode =>
  decided.reduce(withDecision, { edge, backends, capacity, used, seen: used, labels, layers, running, reservedFor, failures: 0 });

const withDecision = (node: FleetNode, decision: Decided): FleetNode => ({
  ...node,
  used: laidOver(node.used, decision),
  running: { ...node.running, [decision.project]: (node.running[decision.project] ?? 0) + decision.sandboxes },
  reservedFor: decision.isApart ? decision.project : node.reservedFor,
});

/** The two oldest of one project become one; their load is kept. */
const mergeOldest = (decided: readonly Decided[]): Decided[] => {
  const [oldest, ...others] = decided;
  const twin = others.findIndex(({ project, isApart }) => project === oldest?.project && isApart === oldest.isApart);
  const second = others[twin];
  if (!oldest || !second) return others; // many projects at once: the oldest is most likely in the beats by now
  const merged = { ...sum(oldest, second), at: second.at, sequence: second.sequence };
  return [merged, ...others.filter((_, n) => n !== twin)];
};

const sum = <T extends Amounts>(a: T, b: Amounts) => ({
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
