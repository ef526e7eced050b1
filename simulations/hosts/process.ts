/** One process of the platform: its clock, its link to the bus, and the ports it reaches over it. It ends all at once. */
import { type ClockFault, NodeClock } from '../kernel/clock.ts';
import type { Task } from '../kernel/heap.ts';
import type { Random } from '../kernel/random.ts';
import type { VirtualTime } from '../kernel/virtual-time.ts';
import type { SimBus } from '../ports/bus.ts';
import { type CommandQueueServer, SimCommandQueue } from '../ports/command-queue.ts';
import { type BusServer, SimEventLog } from '../ports/event-log.ts';
import type { EventStore } from '../ports/event-store.ts';
import { Link, type LinkQuality } from '../ports/link.ts';

/** What all processes of a run stand on. */
export type Ground = {
  readonly time: VirtualTime;
  readonly server: BusServer;
  readonly store: EventStore;
  readonly commands: CommandQueueServer;
  readonly bus: SimBus;
};

export class Process {
  readonly name: string;
  /** The how-manieth process of this name it is. */
  readonly life: number;
  readonly random: Random;
  readonly clock: NodeClock;
  readonly link: Link;
  readonly log: SimEventLog;
  readonly queue: SimCommandQueue;
  readonly bus: SimBus;

  constructor(name: string, ground: Ground, random: Random, quality: LinkQuality, clock: ClockFault, life = 1) {
    this.name = name;
    this.life = life;
    this.random = random;
    this.clock = new NodeClock(ground.time, clock);
    this.link = new Link(ground.time, random.child('link'), quality);
    this.log = new SimEventLog(ground.server, ground.store, this.link);
    this.queue = new SimCommandQueue(ground.commands, this.link);
    this.bus = ground.bus;
  }

  get alive(): boolean {
    return this.link.isOpen;
  }

  /** Killed: no last words. */
  kill(): void {
    this.link.close();
  }

  after(delayMs: number, label: string, run: () => void): Task {
    return this.clock.schedule(delayMs, new Due(label, this, run));
  }

  every(periodMs: number, label: string, run: () => void): void {
    this.after(periodMs, label, () => {
      run();
      this.every(periodMs, label, run);
    });
  }

  /** As unique as a process needs: drawn from the seed. */
  freshId(): string {
    return this.random.next().toString(16).padStart(8, '0') + this.random.next().toString(16).padStart(8, '0');
  }
}

/** Done if its process lives by then. */
class Due implements Task {
  readonly label: string;
  run: Task['run'] = ifAlive;
  readonly process: Process;
  work: () => void;

  constructor(label: string, process: Process, work: () => void) {
    this.label = label;
    this.process = process;
    this.work = work;
  }

  letGo(): void {
    this.work = nothing;
  }
}
const nothing = (): void => {};

function ifAlive(this: Task): void {
  const { process, work } = this as Due;
  if (process.alive) work();
}
