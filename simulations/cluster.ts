/**
 * A whole platform in one process: a bus, nodes with an Edge each, any number of apiservers, placements and watchers, each on a
 * link and a clock of its own. Processes are killed and come back as their supervisor would bring them back.
 *
 * Adding a role: a host under `hosts/` over `Process` and `ActorRunner`, its definition in `parts.ts`, a line here.
 */
import type { Commit } from '#bus/envelope.ts';
import type { Capacity } from '#bus/edge/schema.ts';
import type { EdgeName, Shard } from '#bus/ids.ts';
import { SimApiserver } from './hosts/apiserver.ts';
import { SimEdge } from './hosts/edge.ts';
import { type ProjectPlan, SimIam } from './hosts/iam.ts';
import { SimJobs } from './hosts/jobs.ts';
import { HOST_LIMITS } from './hosts/limits.ts';
import { type Observer, observers } from './hosts/observer.ts';
import { type Parts, PRODUCTION } from './hosts/parts.ts';
import { SimPlacement } from './hosts/placement.ts';
import { type Ground, Process } from './hosts/process.ts';
import { SimWatcher } from './hosts/watcher.ts';
import { type ClockFault, TRUE_TIME } from './kernel/clock.ts';
import { Random } from './kernel/random.ts';
import type { Trace } from './kernel/trace.ts';
import { type Tiebreak, VirtualTime } from './kernel/virtual-time.ts';
import { SimBus } from './ports/bus.ts';
import { CommandQueueServer } from './ports/command-queue.ts';
import { BusServer } from './ports/event-log.ts';
import { EventStore, type Keeping } from './ports/event-store.ts';
import { GOOD_LINK, type LinkQuality } from './ports/link.ts';
import type { Machine } from './ports/machine.ts';
import { GOOD_MACHINE, type MachineQuality } from './ports/machine-quality.ts';
import { NodeLayers } from './ports/node-layers.ts';

export type ClusterOptions = {
  readonly seed: number;
  readonly trace: Trace;
  readonly tiebreak: Tiebreak;
  readonly keeping: Keeping;
  readonly duplicateWindowMs?: number;
  readonly nodes: number;
  readonly capacity: Capacity;
  readonly apiservers: number;
  readonly placements: number;
  readonly watchers: number;
  readonly shards: number;
  readonly lanes: number;
  readonly viewAgeMs: number;
  /** Projects with quotas, those above before those below; none: no bound, and no IAM to ask. */
  readonly projects?: readonly ProjectPlan[];
  readonly iams?: number;
  /** Instances of the jobs role; none where nobody has a job. */
  readonly jobs?: number;
  readonly parts?: Partial<Parts>;
  /** Which program a node's next process runs, where that is not all the same. */
  readonly partsOfNode?: (edge: EdgeName) => Partial<Parts>;
  /** Older versions of records as whoever checks them reads them. */
  readonly lift?: (commit: Commit) => Commit;
  readonly observers: readonly Partial<Observer>[];
  /** Drawn for each process by its name. */
  readonly clockOf?: (random: Random) => ClockFault;
  readonly linkOf?: (random: Random) => LinkQuality;
  readonly machineOf?: (random: Random) => MachineQuality;
  /** Whether nodes fetch the layers that they lack; otherwise all of them lie on all of them. */
  readonly hasLayerStore?: boolean;
  /** Whether a node cannot get a layer just now. */
  readonly missingLayer?: (random: Random) => string | null;
};

type Role = 'apiserver' | 'placement' | 'watcher' | 'iam' | 'jobs';
export type Node = { readonly name: EdgeName; readonly machine: Machine; readonly layers: NodeLayers; edge: SimEdge; process: Process; dead: boolean };

export class Cluster {
  readonly o: ClusterOptions;
  readonly random: Random;
  readonly ground: Ground;
  readonly time: VirtualTime;
  readonly parts: Parts;
  readonly observer: Observer;
  readonly shards: readonly Shard[];
  readonly nodes: Node[] = [];
  readonly apiservers: (SimApiserver | null)[] = [];
  readonly placements: (SimPlacement | null)[] = [];
  readonly watchers: (SimWatcher | null)[] = [];
  readonly iams: (SimIam | null)[] = [];
  readonly jobs: (SimJobs | null)[] = [];
  /** Faults are over: whoever starts from now on has a good link too. */
  isCalm = false;
  readonly #processes = new Map<string, Process>();
  #incarnations = 0;

  constructor(options: ClusterOptions) {
    this.o = options;
    this.random = Random.fromSeed(options.seed);
    this.parts = { ...PRODUCTION, ...options.parts };
    this.observer = observers(options.observers);
    this.shards = Array.from({ length: options.shards }, (_, i) => i.toString(36) as Shard);
    const { keeping, duplicateWindowMs } = options;
    const window = duplicateWindowMs === undefined ? {} : { duplicateWindowMs };
    this.time = new VirtualTime(options.trace, this.random, options.tiebreak);
    const server = new BusServer(this.time, this.random.child('bus'));
    const store = new EventStore({ shards: this.shards, keeping, ...window });
    const commands = new CommandQueueServer(server, { lean: keeping === 'lean', ...window });
    this.ground = { time: this.time, server, store, commands, bus: new SimBus(server) };
    store.observe((message, commit, messageId) => {
      options.trace.commit(message.sequence, messageId);
      this.observer.stored(message, commit && (options.lift?.(commit) ?? commit));
      const { address, sequence } = message;
      if (!commit) return;
      this.ground.bus.spread(`out.${address.project}`, { address, commit });
      if (address.kind === 'edge') this.ground.bus.spread(`out.edge.${address.id}`, { commit });
      if (address.kind === 'job') this.ground.bus.spread('out.kind.job', { address, sequence, commit });
    });
  }

  /** Everything starts within the first second, nodes one after another. */
  start(): void {
    for (let i = 0; i < this.o.apiservers; i += 1) this.#startRole('apiserver', i);
    for (let i = 0; i < this.o.placements; i += 1) this.#startRole('placement', i);
    for (let i = 0; i < this.o.watchers; i += 1) this.#startRole('watcher', i);
    for (let i = 0; i < (this.o.iams ?? 0); i += 1) this.#startRole('iam', i);
    for (let i = 0; i < (this.o.jobs ?? 0); i += 1) this.#startRole('jobs', i);
    for (let i = 0; i < this.o.nodes; i += 1) this.#addNode(`n${i.toString().padStart(3, '0')}` as EdgeName);
  }

  process(name: string): Process | undefined {
    return this.#processes.get(name);
  }
  get processes(): readonly Process[] {
    return [...this.#processes.values()];
  }

  /** A process dies and its supervisor starts another. Names are `apiserver-0`, `edge-n003`, … */
  crash(name: string): void {
    const [role = '', place = ''] = name.split('-');
    const node = this.nodes.find((n) => `edge-${n.name}` === name);
    if (node) {
      node.edge.kill();
      this.#restartEdge(node, HOST_LIMITS.restartMs);
    } else this.#crashRole(role as Role, Number(place));
  }

  /** The machine is gone, with all that ran on it; `comesBackMs` later it boots, or never (null). */
  powerLoss(node: Node, comesBackMs: number | null): void {
    node.edge.kill();
    node.machine.powerLoss();
    node.layers.powerLoss();
    node.dead = comesBackMs === null;
    if (comesBackMs !== null) this.#restartEdge(node, comesBackMs);
  }

  /** A live apiserver that a client would reach; null when there is none. */
  someApiserver(random: Random): SimApiserver | null {
    const live = this.apiservers.filter((api) => api !== null);
    return live.length > 0 ? random.pick(live) : null;
  }

  /** The bus is down for a while, or without a leader: nothing is stored meanwhile. */
  busOutage(ms: number, kind: 'down' | 'leaderless'): void {
    const { server, commands } = this.ground;
    if (kind === 'down') server.up = false;
    else server.leaderlessUntilUs = Math.max(server.leaderlessUntilUs, this.time.nowUs + ms * 1_000);
    this.time.after(ms * 1_000 + 1, 'bus back', () => {
      server.up = true;
      commands.serverBack();
    });
  }

  #processOf(name: string): Process {
    const random = this.random.child(name);
    const link = (this.isCalm ? undefined : this.o.linkOf?.(random.child('link quality'))) ?? GOOD_LINK;
    const clock = this.o.clockOf?.(random.child('clock')) ?? TRUE_TIME;
    this.#incarnations += 1;
    const life = (this.#processes.get(name)?.life ?? 0) + 1;
    const process = new Process(name, this.ground, random.child(`life ${this.#incarnations}`), link, clock, life);
    this.#processes.set(name, process);
    return process;
  }

  #startRole(role: Role, index: number): void {
    const process = this.#processOf(`${role}-${index}`);
    const { parts, observer } = this;
    if (role === 'apiserver') this.apiservers[index] = new SimApiserver(process, this.o.shards, this.o.lanes);
    else if (role === 'watcher') {
      const watcher = new SimWatcher(process, parts, observer, () => this.ground.server.up);
      this.watchers[index] = watcher;
      watcher.start();
    } else if (role === 'jobs') {
      const jobs = new SimJobs({ process, shards: this.shards, parts, observer, someApiserver: (random) => this.someApiserver(random) });
      this.jobs[index] = jobs;
      jobs.start();
    } else if (role === 'iam') {
      const iam = new SimIam({ process, shards: this.shards, projects: this.o.projects ?? [], parts, observer, onOver: () => this.#crashRole(role, index) });
      this.iams[index] = iam;
      iam.start();
    } else {
      const { lanes: laneCount, shards: shardCount, viewAgeMs } = this.o;
      const placement = new SimPlacement({
        process,
        laneCount,
        shardCount,
        viewAgeMs,
        life: process.life,
        hasQuotas: (this.o.projects ?? []).length > 0,
        parts,
        observer,
        onOver: () => this.#crashRole(role, index),
      });
      this.placements[index] = placement;
      placement.start();
    }
  }

  #crashRole(role: Role, index: number): void {
    this.#processes.get(`${role}-${index}`)?.kill();
    const hosts: Readonly<Record<Role, ({ kill(): void } | null)[]>> = {
      apiserver: this.apiservers,
      placement: this.placements,
      watcher: this.watchers,
      iam: this.iams,
      jobs: this.jobs,
    };
    hosts[role][index]?.kill();
    hosts[role][index] = null;
    this.time.after(HOST_LIMITS.restartMs * 1_000, 'restart', () => this.#startRole(role, index));
  }

  #addNode(name: EdgeName): void {
    const random = this.random.child(`machine ${name}`);
    const quality = this.o.machineOf?.(random.child('quality')) ?? GOOD_MACHINE;
    const machine = this.parts.machine(name, this.time, random, quality, [this.observer]);
    const layers = new NodeLayers(this.time, random.child('layers'), quality, this.o.hasLayerStore ?? false);
    const node = { name, machine, layers, dead: false } as Node;
    this.nodes.push(node);
    this.#startEdge(node);
  }

  #startEdge(node: Node, failures = 0): void {
    const { observer, shards } = this;
    const parts = { ...this.parts, ...this.o.partsOfNode?.(node.name) };
    const process = this.#processOf(`edge-${node.name}`);
    const layers = this.random.child(`layers ${node.name}`);
    node.process = process;
    node.edge = new SimEdge({
      edge: node.name,
      process,
      machine: node.machine,
      layers: node.layers,
      capacity: this.o.capacity,
      shards,
      laneCount: this.o.lanes,
      parts,
      observer,
      missingLayer: () => this.o.missingLayer?.(layers) ?? null,
      onOver: () => this.#restartEdge(node, Math.min(HOST_LIMITS.restartMaxMs, HOST_LIMITS.restartMs * 2 ** Math.min(failures, 4)), failures + 1),
    });
    this.time.after(this.nodes.length * 1_000, 'edge starts', () => (process.alive ? node.edge.start() : undefined));
  }

  #restartEdge(node: Node, afterMs: number, failures = 0): void {
    const dead = node.edge;
    this.time.after(afterMs * 1_000, 'restart', () => {
      if (!node.dead && node.edge === dead) this.#startEdge(node, failures);
    });
  }
}
