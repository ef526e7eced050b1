/**
 * While a step runs, ambient time and chance throw: what a decision reads there no seed can repeat.
 *
 * Named imports of built-in modules are live bindings, so `syncBuiltinESMExports` reaches code that imported `randomUUID` by
 * name. `Date` still builds from a number: formatting is no reading.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';

type Holder = Record<string, unknown>;
type Wire = { readonly holder: Holder; readonly name: string; readonly what: string };

const wire = (holder: object, what: string, ...names: string[]): Wire[] => names.map((name) => ({ holder: holder as Holder, name, what: `${what}${name}` }));
const RANDOM = ['randomUUID', 'randomBytes', 'randomInt', 'randomFillSync', 'randomFill'];
const TIMERS = ['setTimeout', 'setInterval', 'setImmediate'];

const WIRES: readonly Wire[] = [
  ...wire(Math, 'Math.', 'random'),
  ...wire(globalThis.performance, 'performance.', 'now'),
  ...wire(globalThis, '', ...TIMERS, 'fetch', 'queueMicrotask'),
  ...wire(timers, 'timers.', ...TIMERS),
  ...wire(process, 'process.', 'hrtime'),
  ...wire(crypto, 'crypto.', ...RANDOM),
  ...wire(globalThis.crypto, 'crypto.', 'getRandomValues', 'randomUUID'),
];

export class Tripwire extends Error {
  constructor(what: string) {
    super(`${what} was used while a step ran; take time and chance from the ports, so that a seed decides them`);
    this.name = 'Tripwire';
  }
}

const RealDate = globalThis.Date;
class NoAmbientDate extends RealDate {
  constructor(...parts: unknown[]) {
    if (parts.length === 0) throw new Tripwire('new Date()');
    super(...(parts as [number]));
  }
  static override now(): number {
    throw new Tripwire('Date.now()');
  }
}

let depth = 0;

/** Runs `work`, which must be synchronous, with the wires set; they are gone again when it ends, however it ends. */
export const withTripwires = <T>(work: () => T): T => {
  if (depth > 0) return work();
  const kept = WIRES.map(({ holder, name }) => Object.getOwnPropertyDescriptor(holder, name));
  depth += 1;
  try {
    for (const { holder, name, what } of WIRES) set(holder, name, { configurable: true, writable: true, value: () => trip(what) });
    globalThis.Date = NoAmbientDate as DateConstructor;
    syncBuiltinESMExports();
    return work();
  } finally {
    depth -= 1;
    globalThis.Date = RealDate;
    for (const [i, { holder, name }] of WIRES.entries()) set(holder, name, kept[i]);
    syncBuiltinESMExports();
  }
};

const set = (holder: Holder, name: string, descriptor: PropertyDescriptor | undefined): void => {
  if (descriptor) Object.defineProperty(holder, name, descriptor);
  else delete holder[name]; // it was inherited
};
const trip = (what: string): never => {
  throw new Tripwire(what);
};
