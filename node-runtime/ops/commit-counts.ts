/**
 * What a commit adds to the counts that operators look at. Pure; the log holds what happened, so roles need not count beside it.
 */
import type { Commit } from '#bus/envelope.ts';

export type Counts = {
  /** Sandboxes asked for, without those of parents: their chunks ask again. */
  readonly accepted: number;
  /** Given a node for the first time, and after a refusal or a loss. */
  readonly assigned: number;
  readonly reassigned: number;
  /** By code: sandboxes that got no node. */
  readonly unplaceable: Readonly<Record<string, number>>;
  readonly started: number;
  readonly failed: { readonly code: string; readonly fault: string } | null;
  readonly givenBackMiB: number;
};

type Event = Commit['events'][number];

export const countsOf = ({ kind, events }: Pick<Commit, 'kind' | 'events'>): Counts => {
  const assignments = kind === 'request' ? events.filter(isOf('SandboxesAssigned')).flatMap(({ assignments }) => assignments as { attempt: number }[]) : [];
  const again = assignments.filter(({ attempt }) => attempt > 0).length;
  const unplaceable: Record<string, number> = {};
  for (const { error } of kind === 'request' ? events.filter(isOf('SandboxUnplaceable')) : []) {
    const { code } = error as { code: string };
    unplaceable[code] = (unplaceable[code] ?? 0) + 1;
  }
  const failure = kind === 'sandbox' ? events.find(isOf('SandboxFailed')) : undefined;
  const { code, fault } = (failure?.['error'] ?? {}) as { code?: string; fault?: string };
  return {
    accepted: kind === 'request' ? sum(events.filter(isOf('RequestAccepted')), 'count') : 0,
    assigned: assignments.length - again,
    reassigned: again,
    unplaceable,
    started: kind === 'sandbox' ? events.filter(isOf('SandboxStarted')).length : 0,
    failed: failure ? { code: code ?? 'INTERNAL', fault: fault ?? 'infra' } : null,
    givenBackMiB: kind === 'sandbox' ? sum(events.filter(isOf('SandboxPaused')), 'memoryGivenBackMiB') : 0,
  };
};

const isOf =
  (type: string) =>
  (event: Event): boolean =>
    event.type === type;

const sum = (events: readonly Event[], field: string): number => events.reduce((total, event) => total + Number(event[field] ?? 0), 0);
