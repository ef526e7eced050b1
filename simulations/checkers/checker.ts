/**
 * What every checker is: an observer that throws when something happened that must never happen, and a last look at the end.
 * One invariant family per file; the ids are those in the heads of the modules that promise them.
 */
import type { Cluster } from '../cluster.ts';
import type { Observer } from '../hosts/observer.ts';
import { hashOf } from '../kernel/random.ts';

export const INVARIANTS = [
  'INV-OWN',
  'INV-CAP',
  'INV-DUR',
  'INV-SEQ',
  'INV-IDEM',
  'INV-REPLAY',
  'INV-SCHEMA',
  'INV-EFFECT',
  'INV-IAM',
  'INV-QUOTA',
  'INV-SPEND',
  'INV-LEASE',
  'INV-ORPHAN',
  'INV-LIVE',
  'INV-ZERO',
  'AUDITOR',
] as const;
export type Invariant = (typeof INVARIANTS)[number];

export class Violation extends Error {
  readonly invariant: Invariant;
  readonly atMs: number;
  constructor(invariant: Invariant, atMs: number, message: string) {
    super(`${invariant} at ${atMs} ms: ${message}`);
    this.name = 'Violation';
    this.invariant = invariant;
    this.atMs = atMs;
  }
}

export type CheckContext = {
  readonly cluster: () => Cluster;
  /** One actor in so many is followed by the checkers that cost memory or time per actor; 1 follows all. */
  readonly oneIn: number;
  readonly fail: (invariant: Invariant, message: string) => never;
};

export type Checker = Partial<Observer> & {
  /** After the safety phase and the liveness phase, when everything was asked to end. */
  readonly atEnd?: () => void;
};
export type Stored = Observer['stored'];
export type MakeChecker = (context: CheckContext) => Checker;

/** Whether the actor is one of the sample: the same ones for every checker and every run. */
export const isFollowed = (id: string, oneIn: number): boolean => oneIn === 1 || hashOf(id) % oneIn === 0;
