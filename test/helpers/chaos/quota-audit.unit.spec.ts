/** The auditor finds what it is there for: each test plants one fault in a small log. */
import { describe, expect, test } from 'vitest';
import { type Entry, keepBooks } from './quota-audit.ts';

type Facts = Entry['events'];
class Log {
  readonly entries: Entry[] = [];
  #add(kind: string, project: string, id: string, events: Facts): this {
    const n = this.entries.length + 1;
    this.entries.push({ storedAt: n, shard: '0', sequence: n, project, kind, id, events });
    return this;
  }
  project(name: string, ...events: Facts): this {
    return this.#add('project', name, name, events);
  }
  created(name: string, sandboxes: number, ancestors: string[] = []): this {
    return this.project(name, { type: 'ProjectCreated', ancestors, limits: { sandboxes } });
  }
  opened(name: string, id: string, sandboxes: number, payer = name): this {
    return this.project(name, { type: 'LeaseOpened', lease: { id, project: payer, granted: { sandboxes, memoryMiB: sandboxes * 8 } } });
  }
  settled(name: string, id: string, fence = this.entries.length): this {
    return this.project(name, { type: 'LeaseSettled', id, fence: { 0: fence } });
  }
  accepted(name: string, id: string, lease: string | null, count: number): this {
    const assignments = Array.from({ length: count }, (_, index) => ({ index, attempt: 0, edge: 'e' }));
    const accepted = { type: 'RequestAccepted', spec: { limits: { memoryMiB: 8 } }, quotaLease: lease, deadlineAt: 1e12 };
    return this.#add('request', name, id, [accepted, { type: 'SandboxesAssigned', assignments }]);
  }
  admitted(name: string, requestId: string, index: number): this {
    return this.#add('sandbox', name, `${requestId}-${index}`, [{ type: 'SandboxAdmitted', requestId, index, attempt: 0, edge: 'e', generation: 1 }]);
  }
  ended(name: string, requestId: string, index: number): this {
    return this.#add('sandbox', name, `${requestId}-${index}`, [{ type: 'SandboxStopped' }]);
  }
  lost(edge: string, generation: number): this {
    return this.#add('edge', 'system', edge, [{ type: 'EdgeLost', generation }]);
  }
  get kinds(): string[] {
    return keepBooks(this.entries).findings.map(({ kind, amount }) => `${kind} ${amount}`);
  }
}
const two = () => new Log().created('p', 2).opened('p', 'a', 2).accepted('p', 'r', 'a', 2).admitted('p', 'r', 0).admitted('p', 'r', 1);

describe('the auditor of quotas', () => {
  test('has nothing to say of a life in order, and knows what is left', () => {
    const log = two().settled('p', 'a').ended('p', 'r', 0).opened('p', 'b', 1);
    const books = keepBooks(log.entries);
    expect(books.findings).toEqual([]);
    expect(books.used('p')).toEqual({ sandboxes: 1, memoryMiB: 8 });
    expect(books.leases('p')).toEqual(['b']);
    expect(keepBooks(log.settled('p', 'b').lost('e', 1).entries).used('p')).toEqual({});
  });

  test('a lease that is spent twice', () => {
    expect(two().accepted('p', 's', 'a', 1).kinds).toEqual(['overspent 1']);
    expect(new Log().created('p', 2).accepted('p', 's', null, 2).kinds).toEqual(['overspent 2']);
  });

  test('a lease for which there is no room, in the project or above it, or because its limit fell', () => {
    expect(two().settled('p', 'a').opened('p', 'b', 1).kinds).toEqual(['overlent 1']);
    expect(two().opened('p', 'b', 1).kinds).toEqual(['overlent 1']);
    const nested = new Log().created('top', 1).created('p', 5, ['top']).opened('p', 'a', 2).opened('top', 'a', 2, 'p');
    expect(nested.kinds).toEqual(['overlent 1']);
    const lowered = two()
      .settled('p', 'a')
      .ended('p', 'r', 0)
      .project('p', { type: 'QuotaSet', limits: { sandboxes: 1 } });
    expect(lowered.kinds).toEqual([]);
    expect(lowered.opened('p', 'b', 1).kinds).toEqual(['overlent 1']);
  });

  test('a request above the fence of its lease, which runs unconfirmed, or is confirmed without room', () => {
    const late = () => new Log().created('p', 2).opened('p', 'a', 2).settled('p', 'a').accepted('p', 'r', 'a', 2);
    expect(late().kinds).toEqual([]);
    expect(late().admitted('p', 'r', 0).kinds).toEqual(['unpaid 1']);
    const before = new Log().created('p', 2).opened('p', 'a', 2).accepted('p', 'r', 'a', 2).admitted('p', 'r', 0);
    expect(before.settled('p', 'a', 2).kinds).toEqual(['unpaid 1']);
    const confirmed = late().project('p', { type: 'ChargeConfirmed', requestId: 'r' });
    expect(confirmed.admitted('p', 'r', 0).kinds).toEqual([]);
    const taken = late().opened('p', 'b', 1).project('p', { type: 'ChargeConfirmed', requestId: 'r' });
    expect(taken.kinds).toEqual(['overlent 1']);
  });
});
