/**
 * INV-QUOTA, INV-SPEND: at the moment a lease is opened, all open leases of a project in full and what runs outside of them fit into
 * its quota; and what requests were committed under a lease never exceeds what it granted. At the end no lease is left. The sums
 * are this file's own, from the log alone.
 */
import type { ProjectEvent } from '#bus/project/schema.ts';
import type { Checker, MakeChecker, Stored } from './checker.ts';
import { payersOf } from './iam.ts';

type Lease = { readonly granted: number; spent: number };
type Running = { readonly project: string; readonly lease: string; readonly edge: string; readonly generation: number };

export const quotaChecker: MakeChecker = ({ cluster, fail }): Checker => {
  /** Sandboxes alone: other dimensions go the same way, and INV-IAM sums them too. */
  const leases = new Map<string, Lease>();
  const open = new Map<string, Set<string>>();
  const leaseOf = new Map<string, string>();
  const running = new Map<string, Running>();

  const opened = (project: string, id: string, granted: number): void => {
    const ofProject = open.get(project) ?? new Set();
    open.set(project, ofProject.add(id));
    if (!leases.has(id)) leases.set(id, { granted, spent: 0 });
    const limit = cluster().o.projects?.find(({ name }) => name === project)?.limits.sandboxes;
    if (limit === undefined) return;
    let lent = 0;
    for (const one of ofProject) lent += leases.get(one)?.granted ?? 0;
    let outside = 0;
    for (const one of running.values())
      if (!ofProject.has(one.lease) && payersOf(cluster().o.projects ?? [], one.project).some(({ name }) => name === project)) outside += 1;
    if (lent + outside > limit)
      fail('INV-QUOTA', `${project} lent ${lent} sandboxes with lease ${id} while ${outside} ran outside of its leases; its quota is ${limit}`);
  };
  const spent = (request: string, lease: string, count: number): void => {
    leaseOf.set(request, lease);
    const known = leases.get(lease);
    if (!known) return fail('INV-SPEND', `request ${request} was committed under lease ${lease}, which nobody had opened`);
    known.spent += count;
    if (known.spent > known.granted) fail('INV-SPEND', `${known.spent} sandboxes were committed under lease ${lease}, which granted ${known.granted}`);
  };
  const onRequest: Stored = ({ address }, commit) => {
    const accepted = commit?.events.find(({ type }) => type === 'RequestAccepted');
    const lease = accepted?.['quotaLease'];
    if (typeof lease !== 'string' || !commit) return;
    spent(
      address.id,
      lease,
      commit.events.reduce((n, event) => n + (event.type === 'SandboxesAssigned' ? (event['assignments'] as unknown[]).length : 0), 0),
    );
  };
  const onSandbox: Stored = ({ address }, commit) => {
    for (const event of commit?.events ?? [])
      if (event.type === 'SandboxAdmitted') {
        const { requestId, edge, generation } = event as unknown as { requestId: string; edge: string; generation: number };
        running.set(address.id, { project: address.project, lease: leaseOf.get(requestId) ?? '', edge, generation });
      } else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') running.delete(address.id);
  };
  const onEdge: Stored = ({ address }, commit) => {
    for (const event of commit?.events ?? [])
      if (event.type === 'EdgeLost')
        for (const [id, { edge, generation }] of running) if (edge === address.id && generation <= (event['generation'] as number)) running.delete(id);
  };
  const onProject: Stored = ({ address }, commit) => {
    for (const event of (commit?.events ?? []) as unknown as ProjectEvent[])
      if (event.type === 'LeaseOpened') opened(address.id, event.lease.id, event.lease.granted.sandboxes ?? 0);
      else if (event.type === 'LeaseSettled') open.get(address.id)?.delete(event.id);
  };
  const by: Partial<Record<string, Stored>> = { request: onRequest, sandbox: onSandbox, edge: onEdge, project: onProject };
  return {
    stored: (message, commit) => (cluster().o.projects ? by[message.address.kind]?.(message, commit) : undefined),
    atEnd: () => {
      for (const [project, left] of open) for (const id of left) fail('INV-QUOTA', `lease ${id} of ${project} was never settled`);
    },
  };
};
