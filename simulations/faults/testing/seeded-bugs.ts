/**
 * Bugs of the kinds that the invariants are about, each behind a patch of one part that only tests apply. A checker that does not
 * find its own bug checks nothing.
 */
import { payerKey } from '#bus/project/quota.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { Admission } from '#actors/edge/admission.ts';
import { jobDefinition } from '#actors/job/job.definition.ts';
import { accept, type ActorDefinition, type Effect } from '#actors/kernel/definition.ts';
import { ActorHost, type HostInput, type HostOutput } from '#actors/kernel/host.ts';
import { requestDefinition } from '#actors/request/request.definition.ts';
import { sandboxDefinition } from '#actors/sandbox/sandbox.definition.ts';
import type { Invariant } from '../../checkers/checker.ts';
import type { MakeHost, Parts } from '../../hosts/parts.ts';
import { LeaseBook } from '#actors/project/lease-book.ts';
import { UsageFold } from '#actors/project/usage.ts';
import { Machine } from '../../ports/machine.ts';

export type SeededBug = { readonly name: string; readonly invariant: Invariant; readonly parts: () => Partial<Parts> };

/** A host whose every step passes through `patch`. */
const patchedHost =
  (patch: (input: HostInput<never>, step: (input: HostInput<never>) => HostOutput<object, Effect>[]) => HostOutput<object, Effect>[]): MakeHost =>
  <S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect>(definition: ActorDefinition<S, C, E, F>) =>
    new (class extends ActorHost<S, C, E, F> {
      override step(input: HostInput<C>): HostOutput<S, F>[] {
        return patch(input as HostInput<never>, (next) => super.step(next as HostInput<C>) as HostOutput<object, Effect>[]) as HostOutput<S, F>[];
      }
    })(definition);

/** Answers when the append is asked for, not when it is durable; the real answer comes to nobody. */
const repliesTooEarly: MakeHost = patchedHost((input, step) =>
  step(input).flatMap((output) =>
    output.type === 'append' && output.repetition === 0 && input.type === 'command'
      ? [
          output,
          {
            type: 'reply',
            token: input.token,
            result: { ok: true, decision: 'accepted', version: output.request.commit.version, commit: output.request.commit },
          } as const,
        ]
      : [output],
  ),
);

const skipsVersions: MakeHost = patchedHost((input, step) =>
  step(input).map((output) => {
    if (output.type !== 'append' || output.request.commit.version < 2) return output;
    const commit = { ...output.request.commit, version: output.request.commit.version + 1 };
    return { ...output, request: { ...output.request, commit } };
  }),
);

/** Takes a redelivered command for a new one. */
const forgetsSequences: MakeHost = patchedHost((input, step) => {
  if (input.type !== 'command') return step(input);
  const { sequence: _, ...meta } = input.meta;
  return step({ ...input, meta });
});

/** Looks at something that is not its argument: here, how often it was called. */
const impureEvolve = (): ActorDefinition<SandboxState, never, SandboxEvent, never> => {
  let calls = 0;
  const evolve = (state: SandboxState | null, event: SandboxEvent): SandboxState => {
    calls += 1;
    const after = sandboxDefinition.evolve(state, event);
    return calls % 50 === 0 ? { ...after, livesVersion: after.livesVersion + 1 } : after;
  };
  return { ...sandboxDefinition, evolve } as never;
};

class NeverFull extends Admission {
  #slot = 0;
  override admit(): { readonly ok: true; readonly slot: number } {
    return { ok: true, slot: this.#slot++ };
  }
}

class Leaky extends Admission {
  #released = 0;
  override release(id: Parameters<Admission['release']>[0]): void {
    this.#released += 1;
    if (this.#released % 5 !== 0) super.release(id);
  }
}

/** Starts a second process where one runs already. */
class LaunchesTwice extends Machine {
  override launch(...[epoch, state, done]: Parameters<Machine['launch']>): void {
    super.launch(epoch, state, (result) => {
      if (result.ok) this.bearAgain(epoch, state);
      done(result);
    });
  }
}

/** Says that a sandbox runs without having started anything. */
class LaunchesNothing extends Machine {
  override launch(...[, , done]: Parameters<Machine['launch']>): void {
    done({ ok: true, value: { pid: 1 } });
  }
}

/** Keeps what it was told to end, and says that it is gone. */
const neverForwards: Partial<Parts> = { request: { ...requestDefinition, pendingEffects: () => [] } };

/** An Edge that gives sandboxes to a project which never asked: the sandbox of another's assignment. */
const misdirects: Partial<Parts> = {
  request: {
    ...requestDefinition,
    evolve: (state, event) => {
      const after = requestDefinition.evolve(state, event);
      if (event.type !== 'SandboxesAssigned') return after;
      const items = after.items.map((item) =>
        item.sandboxId ? { ...item, sandboxId: item.sandboxId.replace(/-[0-9a-f]{20}-/, '-00000000000000000bad-') as typeof item.sandboxId } : item,
      );
      return { ...after, items };
    },
  },
};

/** Takes a pause for done at once. */
const jumps: Partial<Parts> = {
  sandbox: {
    ...sandboxDefinition,
    evolve: (state, event) => {
      const after = sandboxDefinition.evolve(state, event);
      return event.type === 'SandboxPausing' ? { ...after, status: 'paused', transitionDeadlineAt: null } : after;
    },
  },
};

/** Whatever a job's policy is, its members go on when the owner is lost. */
const withoutPolicy: Parts['job'] = {
  ...jobDefinition,
  decide: (state, command, context) =>
    jobDefinition.decide(state && command.type === 'JobDeadlinePassed' ? { ...state, spec: { ...state.spec, onOwnerLost: 'keep' } } : state, command, context),
};

/** Takes a job's end for its members'. */
const endsAlone: Parts['job'] = {
  ...jobDefinition,
  decide: (state, command, context) => {
    const decision = jobDefinition.decide(state, command, context);
    if (decision.kind !== 'accept' || !decision.events.some(({ type }) => type === 'JobEnding')) return decision;
    return accept(...decision.events, { type: 'JobEnded', at: context.at, counts: { reached: 0, failed: 0, left: 0 } });
  },
};

/** An IAM that forgets what runs: it counts only what is lent just now. */
class Forgetful extends UsageFold {
  override usageOf(...asked: Parameters<UsageFold['usageOf']>): ReturnType<UsageFold['usageOf']> {
    return { asOf: super.usageOf(...asked).asOf, byLease: {}, other: {} };
  }
}

/** Spends a lease as often as it likes. */
class Spendthrift extends LeaseBook {
  readonly #last = new Map<string, NonNullable<ReturnType<LeaseBook['take']>>['lease']>();
  override take(...[payer, each, count, now, orFewer]: Parameters<LeaseBook['take']>): ReturnType<LeaseBook['take']> {
    const taken = super.take(payer, each, count, now, orFewer);
    const lease = taken?.lease ?? this.#last.get(payerKey(payer));
    if (lease) this.#last.set(payerKey(payer), lease);
    return taken ?? (lease ? { lease, count } : undefined);
  }
}

export const SEEDED_BUGS: readonly SeededBug[] = [
  { name: 'an answer before its commit', invariant: 'INV-DUR', parts: () => ({ host: repliesTooEarly }) },
  { name: 'a version left out', invariant: 'INV-SEQ', parts: () => ({ host: skipsVersions }) },
  { name: 'a redelivered command obeyed again', invariant: 'INV-IDEM', parts: () => ({ host: forgetsSequences }) },
  { name: 'a state that depends on more than events', invariant: 'INV-REPLAY', parts: () => ({ sandbox: impureEvolve() as never }) },
  { name: 'an admission that never refuses', invariant: 'INV-CAP', parts: () => ({ admission: (capacity) => new NeverFull(capacity) }) },
  { name: 'two processes of one sandbox', invariant: 'INV-OWN', parts: () => ({ machine: (...made) => new LaunchesTwice(...made) }) },
  { name: 'a start that was never made', invariant: 'INV-EFFECT', parts: () => ({ machine: (...made) => new LaunchesNothing(...made) }) },
  { name: 'a sandbox that nobody was assigned', invariant: 'INV-IAM', parts: () => misdirects },
  { name: 'a placement that asks for no room', invariant: 'INV-IAM', parts: () => ({ asksForRoom: false }) },
  { name: 'quota lent on a reading of the log that forgets', invariant: 'INV-QUOTA', parts: () => ({ usage: () => new Forgetful() }) },
  { name: 'a lease spent twice', invariant: 'INV-SPEND', parts: () => ({ book: () => new Spendthrift() }) },
  { name: 'an owner lost without its policy', invariant: 'INV-LEASE', parts: () => ({ job: withoutPolicy }) },
  { name: 'a job that ends without its members', invariant: 'INV-ORPHAN', parts: () => ({ job: endsAlone }) },
  { name: 'a choice that is never forwarded', invariant: 'INV-LIVE', parts: () => neverForwards },
  { name: 'an item that is moved and never sent to where it was moved', invariant: 'INV-LIVE', parts: () => ({ newEffects: () => [] }) },
  { name: 'a reservation that is never given back', invariant: 'INV-ZERO', parts: () => ({ admission: (capacity) => new Leaky(capacity) }) },
  { name: 'a state that skips its way', invariant: 'AUDITOR', parts: () => jumps },
];
