/** A job's share of its project's quota: a bound of its own, in the project's books. */
import { describe, expect, test } from 'vitest';
import type { RequestId, SandboxId } from '#bus/ids.ts';
import type { ProjectCommand } from '#bus/project/schema.ts';
import { needOf, payerKey } from '#bus/project/quota.ts';
import { requestAddress, sandboxAddress } from '#bus/subjects.ts';
import { given as givenActor, historyOf } from '../kernel/testing/given.ts';
import type { StoredCommit } from '../ports/event-log.ts';
import { spec } from '../sandbox/testing/samples.ts';
import { projectDefinition } from './project.definition.ts';
import { address, close, confirm, job, leaseId, name, open, openInShare, root, sandboxes, settle, shareOf, T0, usage } from './testing/samples.ts';
import { UsageFold } from './usage.ts';

const given = (...commands: ProjectCommand[]) =>
  givenActor(
    projectDefinition,
    address,
    historyOf(
      projectDefinition,
      address,
      commands.map((command, i) => ({ command, at: T0 + i })),
    ),
  );

describe('a job’s share', () => {
  test('bounds what is lent for the job, and the refusal names the job, its share and its use', () => {
    const lent = given(root(sandboxes(10)), openInShare(1, 3, 5));
    lent.when(openInShare(2, 3, 5), T0 + 5).thenRejected('QUOTA_EXCEEDED', new RegExp(`the share of job ${job} may use sandboxes 5 and uses 0`));
    lent.when(openInShare(2, 2, 5), T0 + 5).thenEvents({ type: 'LeaseOpened' });
    lent.when(open(2, 7), T0 + 5).thenEvents({ type: 'LeaseOpened' }); // the rest of the project is not its concern
    const decision = projectDefinition.decide(lent.state, openInShare(2, 1, 5, usage(0, 5)), { address, at: (T0 + 5) as never });
    expect(decision).toMatchObject({ kind: 'reject', error: { details: { job, key: 'sandboxes', limit: 5, used: 5 } } });
  });

  test('gives nothing that the project has not', () =>
    given(root(sandboxes(4)), open(1, 3))
      .when(openInShare(2, 2, 40), T0 + 5)
      .thenRejected('QUOTA_EXCEEDED', /project acme may use sandboxes 4/));

  test('is free again when its leases are settled', () =>
    given(root(sandboxes(10)), openInShare(1, 5, 5), close(1), settle(1, { '0': 9 }))
      .when(openInShare(2, 5, 5, usage(9, 0)), T0 + 5)
      .thenEvents({ type: 'LeaseOpened' }));

  test('nothing is lent on a reading of the log that ends below the fence', () =>
    given(root(sandboxes(10)), openInShare(1, 5, 5), close(1), settle(1, { '0': 9 }))
      .when(openInShare(2, 5, 5, usage(8, 0)), T0 + 5)
      .thenRejected('OVERLOADED'));

  test('a commit that came after its lease was settled stands only if the share has room for it', () => {
    const late = given(root(sandboxes(10)), openInShare(1, 5, 5), close(1), settle(1, { '0': 9 }));
    late.when(confirm(1, 10, usage(10, 6), shareOf(5, usage(10, 6))), T0 + 5).thenRejected('QUOTA_EXCEEDED', /the share of job/);
    late.when(confirm(1, 10, usage(10, 6), shareOf(5, usage(10, 5))), T0 + 5).thenEvents({ type: 'ChargeConfirmed' });
  });
});

test('what the log says is used is counted in the share and in the project, and given back in both', () => {
  const fold = new UsageFold();
  const shared = { ...spec, share: job };
  const requestId = `rq-0-${'ab'.repeat(16)}` as RequestId;
  const id = `sb-0-${'0'.repeat(20)}-e` as SandboxId;
  const stored = (at: StoredCommit['address'], sequence: number, state: object) =>
    ({ address: at, sequence, commit: { version: sequence, state } }) as unknown as StoredCommit;
  const items = [0, 1].map(() => ({ sandboxId: id, edge: 'e', attempt: 0, refusedBy: [], error: null }));
  fold.apply(stored(requestAddress(name, requestId), 1, { id: requestId, project: name, spec: shared, deadlineAt: 1e15, quotaLease: leaseId(1), items }));
  const payers = [name, payerKey({ project: name, job })];
  const usedBy = (payer: string) => fold.usageOf([payer], [leaseId(1)]).byLease[leaseId(1)] ?? {};
  for (const payer of payers) expect(usedBy(payer)).toMatchObject({ sandboxes: 2, memoryMiB: 2 * (needOf(spec).memoryMiB ?? 0) });
  for (const index of [0, 1]) {
    const state = { id, project: name, requestId, index, attempt: 0, edge: 'e', generation: 1, status: 'stopped', spec: shared };
    fold.apply(stored(sandboxAddress(name, id), 2 + index, state));
    for (const payer of payers) expect(usedBy(payer).sandboxes ?? 0).toBe(1 - index);
  }
});
