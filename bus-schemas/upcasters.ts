/**
 * Upcasters: pure functions that lift a stored message of version n to n + 1. A reader runs as many as needed.
 * A version above the newest one known stops with UNSUPPORTED_VERSION: unknown history is never dropped.
 */
import { DsecError } from './errors.ts';

export type Versioned = { readonly v?: unknown; readonly [field: string]: unknown };
export type Upcaster = (old: Versioned) => Versioned;

/** `UPCASTERS.<kind>[n - 1]` lifts version n to n + 1; the newest version is its length + 1. */
export const UPCASTERS: Readonly<Record<string, readonly Upcaster[]>> = {
  command: [],
  commit: [],
  // Records inside commits, under `Commit.schema`: state and event of a kind rise together.
  'sandbox.state': [],
  'sandbox.event': [],
  'request.state': [],
  'request.event': [],
  'edge.state': [],
  'edge.event': [],
  'project.state': [],
  'project.event': [],
  'job.state': [],
  'job.event': [],
  'rollout.state': [],
  'rollout.event': [],
};

export const newestVersion = (kind: string): number => (UPCASTERS[kind]?.length ?? 0) + 1;

export const upcast = (kind: string, message: Versioned, what: string, steps: readonly Upcaster[] = UPCASTERS[kind] ?? []): Versioned => {
  const newest = steps.length + 1;
  const version = message.v;
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 1) throw DsecError.of('MALFORMED_MESSAGE', `${what} has no integer version "v"`);
  if (version > newest)
    throw DsecError.of('UNSUPPORTED_VERSION', `${what} has version ${version}, this program reads up to ${newest}; upgrade it`, {
      details: { version, newest },
    });
  return steps.slice(version - 1).reduce((m, step) => step(m), message);
};
