/**
 * An upgrade of the sandbox's records in the middle of their lives. The program of today writes version 2; the one before it, which
 * exists only here, wrote version 1: the process under another name, and nothing of scrubbing rules. Every node begins with the old
 * program and is restarted with the new one, one after another, so that histories begin in one version and end in the other. What
 * reads them is the real `upcast`, with one step; whoever meets a version above its own stops with UNSUPPORTED_VERSION.
 */
import type { Commit } from '#bus/envelope.ts';
import { type Upcaster, upcast, type Versioned } from '#bus/upcasters.ts';
import { ActorHost, type HostInput, type HostOutput } from '#actors/kernel/host.ts';
import type { ActorDefinition, Effect } from '#actors/kernel/definition.ts';
import { type MakeHost, type Parts, PRODUCTION } from '../hosts/parts.ts';

/** Version 1 → 2, as it would stand in `bus-schemas/upcasters.ts`; of states and of events. */
export const LIFT: Upcaster = ({ process, ...old }) => ({
  ...old,
  v: 2,
  ...(process === undefined ? {} : { pid: process }),
  ...('status' in old ? { snapshotScrub: [], snapshotPurpose: 'keep' } : {}),
});

type Record_ = { readonly [field: string]: unknown };
/** What the old program would have written of the same thing. */
const lower = ({ pid, ...record }: Record_): Record_ => {
  const { snapshotScrub: _, snapshotPurpose: __, ...old } = record;
  return pid === undefined ? old : { ...old, process: pid };
};

export type Programs = { readonly old: Partial<Parts>; readonly now: Partial<Parts>; readonly lift: (commit: Commit) => Commit };

/** `step` and `reads` are taken from outside so that tests can break one: what lifts, and up to which version the old program reads. */
export const programsOf = (step: Upcaster = LIFT, reads: number = 1): Programs => {
  const lift = (record: unknown, version: number): Record_ => {
    const { v: _, ...lifted } = upcast('sandbox', { ...(record as Record_), v: version } as Versioned, 'record of a sandbox', [step]);
    return lifted;
  };
  const sandbox = (schema: number, newest: number): Parts['sandbox'] => ({
    ...PRODUCTION.sandbox,
    schema,
    parseState: (raw, version = 1) => {
      if (version > newest) upcast('sandbox', { v: version }, 'state of a sandbox', []); // throws
      return PRODUCTION.sandbox.parseState(lift(raw, version), PRODUCTION.sandbox.schema);
    },
  });
  return {
    old: { sandbox: sandbox(1, reads), host: writesOld },
    now: { sandbox: sandbox(2, 2) },
    lift: (commit) =>
      commit.kind !== 'sandbox' || commit.schema > 1
        ? commit
        : { ...commit, state: lift(commit.state, 1) as Commit['state'], events: commit.events.map((event) => lift(event, 1) as Commit['events'][number]) },
  };
};

/** The old program's host: decides as today's does, and writes its own shape. */
const writesOld: MakeHost = <S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect>(
  definition: ActorDefinition<S, C, E, F>,
) =>
  new (class extends ActorHost<S, C, E, F> {
    override step(input: HostInput<C>): HostOutput<S, F>[] {
      const out = super.step(input);
      if (definition.kind !== 'sandbox') return out;
      return out.map((output) =>
        output.type === 'append' && output.repetition === 0 ? { ...output, request: { ...output.request, commit: asOld(output.request.commit) } } : output,
      );
    }
  })(definition);

const asOld = (commit: Commit): Commit => ({
  ...commit,
  state: lower(commit.state) as Commit['state'],
  events: commit.events.map((event) => lower(event) as Commit['events'][number]),
});
