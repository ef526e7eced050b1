/**
 * INV-LEASE: a job's epochs rise one by one, nobody renews a lease that is over, an owner is lost only after its lease and its grace,
 * and the job's own policy follows in the same commit. INV-ORPHAN: when a job has ended none of its members runs, and none is given
 * a life beyond the job's. A model of its own, from the log alone.
 */
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import type { Checker, MakeChecker, Stored } from './checker.ts';

type Event = { readonly type: string; readonly [field: string]: unknown };
type Policy = { readonly leaseMs: number; readonly graceMs: number; readonly onOwnerLost: 'keep' | 'pause' | 'stop' };
type Job = {
  readonly policy: Policy;
  deadlineAt: number;
  epoch: number;
  leaseUntil: number | null;
  goal: 'running' | 'paused' | 'ending' | 'ended';
};
type Member = { readonly job: string; readonly edge: string; readonly generation: number; started: boolean };

/** A create that names a job may wait this long for its turn and for room; its life begins when it is admitted. */
const CREATE_MS = 300_000;
const CLOCKS_MS = 10_000;

export const jobChecker: MakeChecker = ({ cluster, fail }): Checker => {
  const jobs = new Map<string, Job>();
  const members = new Map<string, Member>();
  const lost = new Map<string, number>();

  const onJobEvent = (id: string, job: Job, event: Event, following: readonly Event[]): void => {
    const at = event['at'] as number;
    switch (event.type) {
      case 'JobClaimed':
        if (event['epoch'] !== job.epoch + 1) fail('INV-LEASE', `${id}: epoch ${event['epoch']} was given after ${job.epoch}`);
        job.epoch += 1;
        job.leaseUntil = event['leaseUntil'] as number;
        break;
      case 'JobLeaseRenewed':
        if (job.leaseUntil === null || at >= job.leaseUntil) fail('INV-LEASE', `${id}: renewed at ${at}, its lease was over at ${job.leaseUntil}`);
        job.leaseUntil = event['leaseUntil'] as number;
        break;
      case 'JobReleased':
        job.leaseUntil = null;
        break;
      case 'JobOwnerLost':
        ownerLost(id, job, at, following);
        break;
      case 'JobExtended':
        job.deadlineAt = event['deadlineAt'] as number;
        break;
      case 'JobPausing':
        job.goal = 'paused';
        break;
      case 'JobResuming':
        job.goal = 'running';
        break;
      case 'JobEnding':
        if (event['reason'] === 'deadline' && at < job.deadlineAt) fail('INV-LEASE', `${id}: ended at ${at} for its deadline ${job.deadlineAt}`);
        job.goal = 'ending';
        break;
      case 'JobEnded':
        job.goal = 'ended';
        ended(id, event['counts'] as { readonly failed: number });
    }
  };
  const ownerLost = (id: string, job: Job, at: number, following: readonly Event[]): void => {
    const { graceMs, onOwnerLost } = job.policy;
    if (job.leaseUntil === null || at < job.leaseUntil + graceMs)
      fail('INV-LEASE', `${id}: its owner was lost at ${at}, its lease ran until ${job.leaseUntil} with ${graceMs} ms of grace`);
    job.leaseUntil = null;
    const expected = onOwnerLost === 'stop' ? 'JobEnding' : onOwnerLost === 'pause' && job.goal === 'running' ? 'JobPausing' : undefined;
    const found = following.find(({ type }) => type === 'JobEnding' || type === 'JobPausing')?.type;
    if (found !== expected) fail('INV-LEASE', `${id}: its owner was lost, its policy is ${onOwnerLost}, and what follows is ${found ?? 'nothing'}`);
  };
  /** One whose create was on the way may still be admitted; it is not started any more. */
  const ended = (id: string, { failed }: { readonly failed: number }): void => {
    if (failed > 0) return;
    for (const [member, { job: of, edge, generation, started }] of members)
      if (of === id && started && generation > (lost.get(edge) ?? 0) && !cluster().nodes.find(({ name }) => name === edge)?.dead)
        fail('INV-ORPHAN', `${id} ended, and its member ${member} runs`);
  };
  const onJob: Stored = ({ address }, commit) => {
    const events = (commit?.events ?? []) as Event[];
    for (const [n, event] of events.entries()) {
      if (event.type === 'JobCreated')
        jobs.set(address.id, {
          policy: event['spec'] as Policy,
          deadlineAt: event['deadlineAt'] as number,
          epoch: 0,
          leaseUntil: null,
          goal: 'running',
        });
      const job = jobs.get(address.id);
      if (job) onJobEvent(address.id, job, event, events.slice(n + 1));
    }
  };
  const onSandbox: Stored = ({ address }, commit) => {
    for (const event of (commit?.events ?? []) as Event[])
      if (event.type === 'SandboxAdmitted') {
        const { spec, edge, generation, totalDeadlineAt } = event as unknown as Member & {
          spec: { labels: Record<string, string> };
          totalDeadlineAt: number;
        };
        const of = spec.labels[PLATFORM_LABELS.job];
        const job = of === undefined ? undefined : jobs.get(of);
        if (!job || of === undefined) continue;
        members.set(address.id, { job: of, edge, generation, started: false });
        if (totalDeadlineAt > job.deadlineAt + CREATE_MS + CLOCKS_MS)
          fail('INV-ORPHAN', `${address.id} may live until ${totalDeadlineAt}, its job ${of} until ${job.deadlineAt}`);
      } else if (event.type === 'SandboxStarted') {
        const member = members.get(address.id);
        if (!member) continue;
        member.started = true; // by an Edge that was declared lost: it ends with its node
        if (jobs.get(member.job)?.goal === 'ended' && member.generation > (lost.get(member.edge) ?? 0))
          fail('INV-ORPHAN', `${address.id} was started after its job ${member.job} had ended`);
      } else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') members.delete(address.id);
  };
  const onEdge: Stored = ({ address }, commit) => {
    for (const event of (commit?.events ?? []) as Event[]) if (event.type === 'EdgeLost') lost.set(address.id, event['generation'] as number);
  };
  const by: Partial<Record<string, Stored>> = { job: onJob, sandbox: onSandbox, edge: onEdge };
  return {
    stored: (message, commit) => (cluster().o.jobs ? by[message.address.kind]?.(message, commit) : undefined),
    atEnd: () => {
      for (const [id, { goal }] of jobs) if (goal !== 'ended') fail('INV-LIVE', `job ${id} is still ${goal} long after it was asked to end`);
    },
  };
};
