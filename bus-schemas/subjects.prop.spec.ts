import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { requestIdFor, sandboxIdFor } from './ids.ts';
import {
  ACTOR_KINDS,
  apiSubject,
  beatSubject,
  commitFilter,
  commitSubject,
  createLaneSubject,
  edgeAddress,
  edgeCommandFilter,
  edgeCommandSubject,
  eventsBinding,
  eventsStream,
  opFilter,
  opSubject,
  outFilter,
  outSubject,
  parseApiSubject,
  parseCommitSubject,
  parseOpSubject,
  requestAddress,
  sandboxAddress,
} from './subjects.ts';
import { anyEdge, anyKey, anyProject } from './testing/arbitraries.ts';

/** Matching as a NATS server does it. */
const matches = (filter: string, subject: string): boolean => {
  const [f, s] = [filter.split('.'), subject.split('.')];
  for (const [i, token] of f.entries()) {
    if (token === '>') return s.length > i;
    if (s[i] === undefined || (token !== '*' && token !== s[i])) return false;
  }
  return f.length === s.length;
};
const anyRequest = fc.record({ project: anyProject, key: anyKey, shards: fc.integer({ min: 1, max: 36 }) });

describe('addresses and subjects', () => {
  test('every address comes back from its subject and from the republished one, and fits a subject', () => {
    fc.assert(
      fc.property(anyRequest, anyEdge, fc.nat(255), ({ project, key, shards }, edge, index) => {
        const requestId = requestIdFor(project, key, shards);
        const sandboxId = sandboxIdFor(requestId, index, 0, edge);
        for (const address of [requestAddress(project, requestId), sandboxAddress(project, sandboxId), edgeAddress(edge)]) {
          expect(parseCommitSubject(commitSubject(address))).toEqual(address);
          expect(parseCommitSubject(outSubject(address))).toEqual(address);
          expect(commitSubject(address).length).toBeLessThan(200);
          expect(commitSubject(address)).not.toMatch(/[*>\s]|\.\./);
          const { subjects, republish } = eventsBinding(address.shard);
          expect(subjects.some((f) => matches(f, commitSubject(address)))).toBe(true);
          expect(matches(republish.dest, outSubject(address))).toBe(true);
          for (const part of [{}, { shard: address.shard }, { project: address.project }, { kind: address.kind, home: address.home }, address]) {
            expect(matches(commitFilter(part), commitSubject(address))).toBe(true);
            expect(matches(outFilter(part), outSubject(address))).toBe(true);
            expect(matches(commitFilter(part), outSubject(address))).toBe(false);
          }
        }
      }),
    );
  });

  test('a sandbox and its request share a shard, so that one tail sees both', () => {
    fc.assert(
      fc.property(anyRequest, anyEdge, ({ project, key, shards }, edge) => {
        const requestId = requestIdFor(project, key, shards);
        expect(sandboxAddress(project, sandboxIdFor(requestId, 0, 0, edge)).shard).toBe(requestAddress(project, requestId).shard);
      }),
    );
  });

  test('an Edge’s filters hold its own sandboxes and nobody else’s', () => {
    fc.assert(
      fc.property(anyRequest, anyEdge, anyEdge, ({ project, key, shards }, edge, other) => {
        fc.pre(edge !== other);
        const id = sandboxIdFor(requestIdFor(project, key, shards), 0, 0, edge);
        for (const [filter, subject] of [
          [edgeCommandFilter(edge), edgeCommandSubject(edge, id)],
          [edgeCommandFilter(edge), edgeCommandSubject(edge, '_')],
          [opFilter(edge), opSubject(project, id, 'exec')],
        ] as const)
          expect(matches(filter, subject)).toBe(true);
        expect(matches(edgeCommandFilter(other), edgeCommandSubject(edge, id))).toBe(false);
        expect(matches(opFilter(other), opSubject(project, id, 'exec'))).toBe(false);
        expect(parseOpSubject(opSubject(project, id, 'exec'))).toEqual({ project, edge, sandbox: id, op: 'exec' });
        expect(parseApiSubject(apiSubject(project, 'create'))).toEqual({ project, verb: 'create' });
      }),
    );
  });

  test('the fixed ones look as they are documented', () => {
    expect([createLaneSubject(3), beatSubject('edge-1' as never), eventsStream('z' as never), eventsBinding('z' as never).republish]).toEqual([
      'dsec.cmd.create.3',
      'dsec.beat.edge-1',
      'EVENTS_z',
      { src: 'dsec.ev.z.>', dest: 'dsec.out.z.>' },
    ]);
  });
});

describe('parsers', () => {
  const token = fc.oneof(fc.constantFrom('dsec', 'ev', 'out', 'api', 'op', '0', '_', '*', '>', '', 'acme', 'Ä', ...ACTOR_KINDS), fc.string());
  test('answer undefined to whatever is not theirs, and never throw', () => {
    fc.assert(
      fc.property(fc.array(token, { maxLength: 9, size: 'max' }), (tokens) => {
        const subject = tokens.join('.');
        const address = parseCommitSubject(subject);
        if (address) expect([commitSubject(address), outSubject(address)]).toContain(subject);
        parseApiSubject(subject);
        parseOpSubject(subject);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    'dsec.ev.0.acme.sandbox.edge-1',
    'dsec.ev.0.acme.sandbox.edge-1.id.more',
    'dsec.ev.0.acme.robot._.id',
    'dsec.ev.00.acme.request._.id',
    'dsec.ev.0.Acme.request._.id',
    'other.ev.0.acme.request._.id',
    'dsec.cmd.0.acme.request._.id',
  ])('%s is no commit subject', (subject) => expect(parseCommitSubject(subject)).toBeUndefined());
});
