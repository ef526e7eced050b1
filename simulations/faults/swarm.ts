/**
 * Each seed draws its own mix: some families of faults and not others, each at its own strength. A run with everything at once
 * finds less than many runs with a few things each: one fault hides another.
 */
import type { ClockFault } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Tiebreak } from '../kernel/virtual-time.ts';
import type { LinkQuality } from '../ports/link.ts';
import { GOOD_LINK } from '../ports/link.ts';
import { GOOD_MACHINE, type MachineQuality } from '../ports/machine-quality.ts';
import { ATLAS } from './atlas.ts';

export const FAMILIES = ['network', 'partition', 'log', 'bus', 'process', 'power', 'time', 'driver', 'storage', 'tenant'] as const;
export type Family = (typeof FAMILIES)[number];

export type Swarm = {
  readonly families: ReadonlySet<Family>;
  readonly tiebreak: Tiebreak;
  /** Mean time between two faults of a kind that come as events. */
  readonly everyMs: Readonly<Record<'partition' | 'leader' | 'outage' | 'crash' | 'power', number>>;
  readonly lostAnswerPerMille: number;
  readonly lostRequestPerMille: number;
  readonly missingLayerPerMille: number;
  readonly linkOf: (random: Random) => LinkQuality;
  readonly clockOf: (random: Random) => ClockFault;
  readonly machineOf: (random: Random) => MachineQuality;
};

export const drawSwarm = (random: Random): Swarm => {
  const families = new Set(FAMILIES.filter((family) => random.child(family).chance(550)));
  const has = (family: Family): boolean => families.has(family);
  const log = random.child('log rates');
  return {
    families,
    tiebreak: random.child('ties').chance(500) ? 'random' : 'fifo',
    everyMs: {
      partition: has('partition') ? random.child('partition').between(15_000, 60_000) : 0,
      leader: has('log') ? random.child('leader').between(20_000, 90_000) : 0,
      outage: has('bus') ? random.child('outage').between(30_000, 120_000) : 0,
      crash: has('process') ? random.child('crash').between(4_000, 30_000) : 0,
      power: has('power') ? random.child('power').between(40_000, 120_000) : 0,
    },
    lostAnswerPerMille: has('log') ? log.between(0, ATLAS.lostAnswerPerMilleMax) : 0,
    lostRequestPerMille: has('log') ? log.between(0, ATLAS.lostRequestPerMilleMax) : 0,
    missingLayerPerMille: has('storage') ? random.child('storage').between(10, 200) : 0,
    linkOf: (link) => (has('network') ? drawLink(link) : GOOD_LINK),
    clockOf: (clock) => (has('time') ? drawClock(clock) : { skewMs: 0, driftPpm: 0 }),
    machineOf: (machine) => ({
      ...(has('driver') ? drawMachine(machine) : GOOD_MACHINE),
      fetchErrorPerMille: has('storage') ? machine.child('fetch').between(0, ATLAS.fetchErrorPerMilleMax) : 0,
    }),
  };
};

const drawLink = (random: Random): LinkQuality => {
  const slow = random.chance(300);
  return {
    minUs: 100,
    maxUs: random.between(500, slow ? ATLAS.delayMaxUs : 5_000),
    lossPerMille: random.chance(500) ? random.between(0, ATLAS.lossPerMilleMax) : 0,
    doublePerMille: random.chance(500) ? random.between(0, ATLAS.doublePerMilleMax) : 0,
    strayPerMille: random.chance(500) ? random.between(0, ATLAS.strayPerMilleMax) : 0,
  };
};

const drawClock = (random: Random): ClockFault => ({
  skewMs: random.between(-ATLAS.skewMsMax, ATLAS.skewMsMax),
  driftPpm: random.between(-ATLAS.driftPpmMax, ATLAS.driftPpmMax),
});

const drawMachine = (random: Random): MachineQuality => ({
  ...GOOD_MACHINE,
  slowBootPerMille: random.between(0, 50),
  slowBootUs: random.between(1, ATLAS.bootMsMax) * 1_000,
  launchErrorPerMille: random.between(0, 100),
  startFailedPerMille: random.between(0, 30),
  zombiePerMille: random.between(0, 50),
  changeErrorPerMille: random.between(0, 100),
  oomPerMille: random.between(0, 100),
});
