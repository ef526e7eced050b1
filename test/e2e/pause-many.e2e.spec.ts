/**
 * Whole jobs at rest: more sandboxes than a page of commands holds, chosen by label, each told of, also when it is asked again and members
 * end meanwhile. Sandboxes are records only: what is tested lies between the caller and their commits. @paper §6.3
 */
import { expect, test } from 'vitest';
import { API_LIMITS } from '#bus/limits.ts';
import type { Group, ManyResult } from '#sdk/mod.ts';
import { connect, type DsecClient, type Sandbox } from '#sdk/mod.ts';
import type { ControlPlane } from '#test/helpers/control-plane.ts';
import { givenControlPlane } from '#test/helpers/given.ts';

const COUNT = 1_500;
const OTHERS = 20;
const JOB = { job: 'large' };

let plane: ControlPlane;
let dsec: DsecClient;
let group: Group;

givenControlPlane({ fleet: [4] }, async (given) => {
  ({ host: plane, dsec } = given);
  group = (await dsec.runContainers({ image: 'small', memoryLimitMb: 32, labels: JOB }, { count: COUNT })).orThrow();
  (await dsec.runContainers({ image: 'small', memoryLimitMb: 32, labels: { job: 'other' } }, { count: OTHERS })).orThrow();
});

const drained = async (results: AsyncIterable<ManyResult>): Promise<ManyResult[]> => {
  const all: ManyResult[] = [];
  for await (const result of results) all.push(result);
  return all;
};
const idsOf = (items: readonly { readonly id: string }[]): string[] => items.map(({ id }) => id).sort();
const withStatus = async (status: string, labels: Record<string, string>): Promise<string[]> => {
  const found: Sandbox[] = [];
  for await (const sandbox of dsec.list({ status: status as never, labels })) found.push(sandbox as Sandbox);
  return idsOf(found);
};
const codes = (results: readonly ManyResult[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { state, error } of results) counts[error?.code ?? state?.status ?? 'none'] = (counts[error?.code ?? state?.status ?? 'none'] ?? 0) + 1;
  return counts;
};

test('by label, over several pages: each is told of once and rests, others run on', async () => {
  expect(COUNT).toBeGreaterThan(API_LIMITS.manyPerPage * 2);
  const paused = await drained(dsec.pauseMany({ labels: JOB }));
  expect([codes(paused), idsOf(paused)]).toEqual([{ paused: COUNT }, idsOf(group.sandboxes)]);
  expect(await withStatus('running', { job: 'other' })).toHaveLength(OTHERS);
  expect(await drained(dsec.pauseMany({ labels: JOB }))).toEqual([]);
  const resumed = await drained(dsec.resumeMany({ labels: JOB }));
  expect([codes(resumed), idsOf(resumed)]).toEqual([{ running: COUNT }, idsOf(group.sandboxes)]);
}, 120_000);

test('repeated under one key it is one pause of each', async () => {
  const ids = idsOf(group.sandboxes);
  const both = await Promise.all([drained(dsec.pauseMany({ ids }, { key: 'night' })), drained(dsec.pauseMany({ ids }, { key: 'night' }))]);
  for (const results of both) expect([codes(results), idsOf(results)]).toEqual([{ paused: COUNT }, ids]);
  const pauses = await Promise.all(
    group.sandboxes.slice(0, 50).map(async (sandbox) => {
      let found = 0;
      for await (const { events } of sandbox.events()) found += events.filter(({ type }) => type === 'SandboxPaused').length;
      return found;
    }),
  );
  expect(new Set(pauses)).toEqual(new Set([2])); // one for each test so far
  await drained(dsec.resumeMany({ ids }));
}, 120_000);

test('while members end: those are told as ended or not at all, all others rest', async () => {
  const ending = group.sandboxes.filter((_, i) => i % 10 === 0);
  const [results] = await Promise.all([drained(dsec.pauseMany({ labels: JOB })), Promise.all(ending.map((sandbox) => sandbox.stop()))]);
  const left = idsOf(group.sandboxes.filter((_, i) => i % 10 !== 0));
  const told = results.map(({ id }) => id as string);
  expect(new Set(told).size).toBe(told.length);
  expect(left.filter((id) => !told.includes(id))).toEqual([]);
  const failed = results.filter(({ error }) => error);
  expect(failed.map(({ error }) => error?.code).filter((code) => code !== 'SANDBOX_ENDED' && code !== 'INVALID_STATE')).toEqual([]);
  expect(failed.filter(({ id }) => left.includes(id))).toEqual([]);
  expect(await withStatus('paused', JOB)).toEqual(left);
  const resumed = await drained(dsec.resumeMany({ ids: idsOf(group.sandboxes) }));
  expect(codes(resumed)).toEqual({ running: left.length, SANDBOX_ENDED: ending.length });
  expect(idsOf(resumed)).toEqual(idsOf(group.sandboxes));
}, 120_000);

test('by somebody who leaves in the middle: what was asked goes on, and the same key takes it up', async () => {
  const leave = new AbortController();
  const seen: string[] = [];
  const left = await withStatus('running', JOB);
  await (async () => {
    for await (const { id } of dsec.pauseMany({ labels: JOB }, { key: 'evening', signal: leave.signal })) {
      seen.push(id);
      if (seen.length === 100) leave.abort();
    }
  })().catch((thrown: { code?: string }) => expect(thrown.code).toBe('CANCELLED'));
  const again = await connect({ servers: plane.servers, project: plane.project });
  const rest = await drained(again.pauseMany({ ids: left }, { key: 'evening' }));
  await again.close();
  expect([codes(rest), idsOf(rest)]).toEqual([{ paused: left.length }, left]);
}, 120_000);
