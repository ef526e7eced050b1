/** Brings the faults of a swarm that come as events, at times that the seed draws; stops when told, and mends what is broken. */
import type { Cluster } from '../cluster.ts';
import type { Random } from '../kernel/random.ts';
import { GOOD_LINK } from '../ports/link.ts';
import { ATLAS } from './atlas.ts';
import type { Swarm } from './swarm.ts';

export class Injector {
  readonly #cluster: Cluster;
  readonly #swarm: Swarm;
  readonly #random: Random;
  #on = true;
  readonly counts: Record<string, number> = {};

  constructor(cluster: Cluster, swarm: Swarm, random: Random) {
    this.#cluster = cluster;
    this.#swarm = swarm;
    this.#random = random;
  }

  start(): void {
    const { server } = this.#cluster.ground;
    server.lostAnswerPerMille = this.#swarm.lostAnswerPerMille;
    server.lostRequestPerMille = this.#swarm.lostRequestPerMille;
    const { everyMs } = this.#swarm;
    this.#recur('partition', everyMs.partition, (random) => this.#partition(random));
    this.#recur('leader', everyMs.leader, (random) => this.#cluster.busOutage(random.between(ATLAS.leaderGapMsMin, ATLAS.leaderGapMsMax), 'leaderless'));
    this.#recur('outage', everyMs.outage, (random) => this.#cluster.busOutage(random.between(100, ATLAS.outageMsMax), 'down'));
    this.#recur('crash', everyMs.crash, (random) => this.#cluster.crash(random.pick(this.#names())));
    this.#recur('power', everyMs.power, (random) => this.#power(random));
  }

  /** From now on nothing goes wrong any more; whoever is down comes back. */
  stop(): void {
    this.#on = false;
    this.#cluster.isCalm = true;
    const { server, commands } = this.#cluster.ground;
    server.lostAnswerPerMille = 0;
    server.lostRequestPerMille = 0;
    server.up = true;
    server.leaderlessUntilUs = 0;
    for (const { link } of this.#cluster.processes) {
      link.cut = false;
      link.quality = GOOD_LINK;
    }
    commands.serverBack();
  }

  get isOn(): boolean {
    return this.#on;
  }

  #recur(name: string, everyMs: number, happen: (random: Random) => void): void {
    if (everyMs === 0) return;
    const random = this.#random.child(name);
    const next = () => {
      const waitMs = Math.round(-Math.log(1 - random.fraction()) * everyMs) + 1;
      this.#cluster.time.after(waitMs * 1_000, `fault ${name}`, () => {
        if (!this.#on) return;
        this.counts[name] = (this.counts[name] ?? 0) + 1;
        happen(random);
        next();
      });
    };
    next();
  }

  #names(): string[] {
    const { o, nodes } = this.#cluster;
    const of = (role: string, count: number) => Array.from({ length: count }, (_, i) => `${role}-${i}`);
    const alive = nodes.filter((node) => !node.dead && node.process.alive).map(({ name }) => `edge-${name}`);
    return [
      ...of('apiserver', o.apiservers),
      ...of('placement', o.placements),
      ...of('watcher', o.watchers),
      ...of('iam', o.iams ?? 0),
      ...of('jobs', o.jobs ?? 0),
      ...alive,
      ...alive,
    ];
  }

  /** One process, or a few at once, hear nothing for a while. */
  #partition(random: Random): void {
    const forMs = random.between(500, ATLAS.partitionMsMax);
    for (let left = random.between(1, 3); left > 0; left -= 1) {
      const process = random.pick(this.#cluster.processes);
      process.link.cut = true;
      this.#cluster.time.after(forMs * 1_000, 'partition heals', () => {
        process.link.cut = false;
        this.#cluster.ground.commands.serverBack();
      });
    }
  }

  #power(random: Random): void {
    const alive = this.#cluster.nodes.filter((node) => !node.dead && node.process.alive);
    if (alive.length < 3) return;
    this.#cluster.powerLoss(random.pick(alive), random.chance(150) ? null : random.between(10_000, ATLAS.bootMsMax));
  }
}
