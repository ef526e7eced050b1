/**
 * The quota's books, kept a second time: from the events of all commits in the order in which they were stored, with none of the
 * platform's own arithmetic. Says where more was spent than lent, where more was lent than there was, and what is in use in the end.
 *
 * `overspent`: requests took more from a lease than it held. `overlent`: a lease was opened, or a late request confirmed, beyond a
 * limit as it stood. `unpaid`: sandboxes ran whose request was stored after its lease had been settled, and never confirmed.
 * Times are those of the servers of one machine, so causes lie before their effects.
 */

export type Entry = {
  readonly storedAt: number;
  readonly shard: string;
  readonly sequence: number;
  readonly project: string;
  readonly kind: string;
  readonly id: string;
  readonly events: readonly Fact[];
};
type Fact = { readonly type: string } & Readonly<Record<string, unknown>>;
type Amounts = Readonly<Record<string, number>>;

export type QuotaFinding = { readonly kind: 'overspent' | 'overlent' | 'unpaid'; readonly amount: number; readonly what: string };
export type QuotaBooks = {
  readonly findings: readonly QuotaFinding[];
  /** In use by a project and those below it when the log ended. */
  used(project: string): Amounts;
  limits(project: string): Amounts;
  /** Leases that are in its books. */
  leases(project: string): readonly string[];
  /** That something was there to be found out. */
  readonly lent: number;
  readonly requests: number;
};

type Lease = { readonly payer: string; readonly granted: Amounts; spent: Amounts; fence: Readonly<Record<string, number>> | null };
type Project = { ancestors: readonly string[]; limits: Amounts; readonly open: Set<string> };
type Request = {
  readonly project: string;
  readonly lease: string | null;
  readonly need: Amounts;
  readonly deadlineAt: number;
  readonly shard: string;
  readonly sequence: number;
  confirmed: boolean;
  readonly items: Map<number, { attempt: number; edge: string; generation: number | null }>;
};

/** An item that no Edge has admitted this long after its deadline never will be: the platform's own rule. */
const ADMISSION_GRACE_MS = 60_000;

const add = (a: Amounts, b: Amounts, times = 1): Amounts => {
  const sum: Record<string, number> = { ...a };
  for (const [key, amount] of Object.entries(b)) sum[key] = (sum[key] ?? 0) + amount * times;
  return sum;
};
const excess = (have: Amounts, limit: Amounts): { key: string; amount: number } | null => {
  for (const [key, most] of Object.entries(limit)) if ((have[key] ?? 0) > most) return { key, amount: (have[key] ?? 0) - most };
  return null;
};

export const keepBooks = (log: readonly Entry[]): QuotaBooks => {
  const books = new Books();
  for (const entry of [...log].sort((a, b) => a.storedAt - b.storedAt)) books.enter(entry);
  return books;
};

class Books implements QuotaBooks {
  readonly findings: QuotaFinding[] = [];
  lent = 0;
  requests = 0;
  readonly #projects = new Map<string, Project>();
  readonly #leases = new Map<string, Lease>();
  readonly #requests = new Map<string, Request>();

  enter(entry: Entry): void {
    for (const fact of entry.events) {
      if (entry.kind === 'project') this.#onProject(entry, fact);
      else if (entry.kind === 'request') this.#onRequest(entry, fact);
      else if (entry.kind === 'sandbox') this.#onSandbox(entry, fact);
      else if (entry.kind === 'edge') this.#onEdge(entry, fact);
    }
    if (entry.kind === 'request') this.#spend(entry);
  }

  limits(project: string): Amounts {
    return this.#projects.get(project)?.limits ?? {};
  }
  leases(project: string): readonly string[] {
    return [...(this.#projects.get(project)?.open ?? [])];
  }
  used(project: string): Amounts {
    return Object.fromEntries(Object.entries(this.#use(project, Number.POSITIVE_INFINITY, () => true)).filter(([, amount]) => amount > 0));
  }

  #use(project: string, now: number, counts: (request: Request) => boolean): Amounts {
    let sum: Amounts = {};
    for (const request of this.#requests.values()) {
      if (!counts(request) || !this.#isIn(request.project, project)) continue;
      const isOver = now !== Number.POSITIVE_INFINITY && request.deadlineAt + ADMISSION_GRACE_MS < now;
      sum = add(sum, request.need, [...request.items.values()].filter(({ generation }) => generation !== null || !isOver).length);
    }
    return sum;
  }

  #isIn(project: string, above: string): boolean {
    return project === above || (this.#projects.get(project)?.ancestors.includes(above) ?? false);
  }

  #onProject({ project, storedAt }: Entry, fact: Fact): void {
    if (fact.type === 'ProjectCreated')
      this.#projects.set(project, { ancestors: fact['ancestors'] as string[], limits: fact['limits'] as Amounts, open: new Set() });
    const own = this.#projects.get(project);
    if (!own) return;
    if (fact.type === 'QuotaSet') own.limits = fact['limits'] as Amounts;
    if (fact.type === 'LeaseOpened') {
      const { id, project: payer, granted } = fact['lease'] as { id: string; project: string; granted: Amounts };
      own.open.add(id);
      this.lent += 1;
      if (!this.#leases.has(id)) this.#leases.set(id, { payer, granted, spent: {}, fence: null });
      this.#checkLent(project, storedAt, `lease ${id} was opened`);
    }
    if (fact.type === 'LeaseSettled') {
      const lease = this.#leases.get(fact['id'] as string);
      own.open.delete(fact['id'] as string);
      if (lease?.payer === project) this.#fence(fact['id'] as string, lease, fact['fence'] as NonNullable<Lease['fence']>);
    }
    if (fact.type === 'ChargeConfirmed') {
      const request = this.#requests.get(fact['requestId'] as string);
      if (request) request.confirmed = true;
      this.#checkLent(project, storedAt, `request ${String(fact['requestId'])} was confirmed`);
    }
  }

  /** Whoever ran from it without being acknowledged in time has not paid. */
  #fence(id: string, lease: Lease, fence: NonNullable<Lease['fence']>): void {
    lease.fence = fence;
    for (const [requestId, request] of this.#requests)
      if (request.lease === id && this.#isLate(request))
        for (const { generation } of request.items.values())
          if (generation !== null)
            this.findings.push({ kind: 'unpaid', amount: 1, what: `an item of ${requestId} ran before its lease ${id} was settled below it` });
  }

  /** Its commit lies above the fence of its lease, and nobody has said that it counts all the same. */
  #isLate({ lease: id, shard, sequence, confirmed }: Request): boolean {
    const fence = (id === null ? undefined : this.#leases.get(id))?.fence ?? null;
    return !confirmed && fence !== null && sequence > (fence[shard] ?? 0);
  }

  /** What is used outside open leases, and every open lease in full. */
  #checkLent(project: string, now: number, what: string): void {
    const own = this.#projects.get(project);
    if (!own) return;
    const open = [...own.open].map((id) => this.#leases.get(id)?.granted ?? {});
    const outside = this.#use(project, now, (request) => !this.#isLate(request) && !(request.lease !== null && own.open.has(request.lease)));
    const over = excess(
      open.reduce((sum, granted) => add(sum, granted), outside),
      own.limits,
    );
    if (over) this.findings.push({ kind: 'overlent', amount: over.amount, what: `${project}: ${what} with ${over.amount} ${over.key} too many` });
  }

  #onRequest({ id, project, shard, sequence }: Entry, fact: Fact): void {
    if (fact.type === 'RequestAccepted') {
      const { limits } = fact['spec'] as { limits: { memoryMiB: number; swapMiB?: number } };
      const need = { sandboxes: 1, memoryMiB: limits.memoryMiB + (limits.swapMiB ?? 0) };
      const lease = (fact['quotaLease'] ?? null) as string | null;
      const deadlineAt = fact['deadlineAt'] as number;
      this.#requests.set(id, { project, lease, need, deadlineAt, shard, sequence, confirmed: false, items: new Map() });
      this.requests += 1;
    }
    const request = this.#requests.get(id);
    if (fact.type === 'SandboxesAssigned')
      for (const { index, attempt, edge } of fact['assignments'] as { index: number; attempt: number; edge: string }[])
        request?.items.set(index, { attempt, edge, generation: null });
    if (fact.type === 'SandboxUnplaceable' || fact.type === 'SandboxDidNotRun') request?.items.delete(fact['index'] as number);
    if (fact.type === 'ChunkDecided' && fact['decision'] === 'abandon') request?.items.clear();
  }

  /** The commit that accepts a request takes its items from its lease, if that stands. */
  #spend({ id, events }: Entry): void {
    const request = this.#requests.get(id);
    if (!request || !events.some(({ type }) => type === 'RequestAccepted')) return;
    const lease = request.lease === null ? undefined : this.#leases.get(request.lease);
    if (!lease) {
      if (request.items.size > 0) this.findings.push({ kind: 'overspent', amount: request.items.size, what: `request ${id} spends from no lease` });
      return;
    }
    lease.spent = add(lease.spent, request.need, request.items.size);
    const over = this.#isLate(request) ? null : excess(lease.spent, lease.granted);
    if (over) this.findings.push({ kind: 'overspent', amount: over.amount, what: `lease ${request.lease}: ${over.amount} ${over.key} more than it held` });
  }

  #onSandbox({ id }: Entry, fact: Fact): void {
    if (fact.type === 'SandboxAdmitted') {
      const { requestId, index, attempt, edge, generation } = fact as unknown as {
        requestId: string;
        index: number;
        attempt: number;
        edge: string;
        generation: number;
      };
      this.#itemOf.set(id, { requestId, index, attempt });
      const request = this.#requests.get(requestId);
      if (request && this.#isLate(request))
        this.findings.push({ kind: 'unpaid', amount: 1, what: `${id} runs, and its request ${requestId} was never confirmed` });
      const item = request?.items.get(index);
      if (!item || item.attempt <= attempt) request?.items.set(index, { attempt, edge, generation });
    }
    if (fact.type !== 'SandboxStopped' && fact.type !== 'SandboxFailed') return;
    const ended = this.#itemOf.get(id);
    const items = ended && this.#requests.get(ended.requestId)?.items;
    if (ended && (items?.get(ended.index)?.attempt ?? Number.POSITIVE_INFINITY) <= ended.attempt) items?.delete(ended.index);
  }
  readonly #itemOf = new Map<string, { readonly requestId: string; readonly index: number; readonly attempt: number }>();

  #onEdge({ id: name }: Entry, fact: Fact): void {
    if (fact.type !== 'EdgeLost') return;
    for (const { items } of this.#requests.values())
      for (const [index, { edge, generation }] of items)
        if (edge === name && generation !== null && generation <= (fact['generation'] as number)) items.delete(index);
  }
}
