import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bodyHashOf,
  ClientKey,
  EdgeName,
  ExecId,
  execIdFor,
  ImageName,
  LayerDigest,
  NAME_PATTERN,
  parseSandboxId,
  ProjectName,
  RequestId,
  requestIdFor,
  SandboxId,
  sandboxIdFor,
  Shard,
  shardFor,
  shardOfRequest,
} from './ids.ts';
import { ID_LIMITS } from './limits.ts';
import { anyEdge, anyKey, anyProject } from './testing/arbitraries.ts';

describe('ids say where their actor lives', () => {
  test('a sandbox id gives back its shard and its edge, whatever they are', () => {
    fc.assert(
      fc.property(anyProject, anyKey, anyEdge, fc.integer({ min: 1, max: 36 }), fc.nat(255), fc.nat(9), (project, key, edge, shards, index, attempt) => {
        const requestId = RequestId.parse(requestIdFor(project, key, shards));
        const id = SandboxId.parse(sandboxIdFor(requestId, index, attempt, edge));
        expect(parseSandboxId(id)).toEqual({ shard: shardOfRequest(requestId), edge });
        expect(id).toMatch(NAME_PATTERN);
        expect(id.length).toBeLessThanOrEqual(ID_LIMITS.sandboxIdLength);
        expect(ExecId.safeParse(execIdFor(id, key)).success).toBe(true);
      }),
    );
  });

  test('equal arguments make equal ids, and any other argument another id', () => {
    fc.assert(
      fc.property(anyProject, anyKey, anyKey, anyEdge, fc.nat(255), fc.nat(9), (project, key, other, edge, index, attempt) => {
        fc.pre(key !== other);
        const id = requestIdFor(project, key, 8);
        expect(requestIdFor(project, key, 8)).toBe(id);
        expect(requestIdFor(project, other, 8)).not.toBe(id);
        const ids = [sandboxIdFor(id, index, attempt, edge), sandboxIdFor(id, index + 1, attempt, edge), sandboxIdFor(id, index, attempt + 1, edge)];
        expect(new Set(ids).size).toBe(3);
      }),
    );
  });

  test('parts that run together are still told apart', () => {
    const id = (project: string, key: string) => requestIdFor(project as ProjectName, key as ClientKey, 1);
    expect(id('ab', 'c')).not.toBe(id('a', 'bc'));
  });

  test('shards are spread evenly enough and stay in range', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 36 }), fc.string(), (count, part) => {
        const shard = Shard.parse(shardFor(count, part));
        expect(Number.parseInt(shard, 36)).toBeLessThan(count);
      }),
    );
    const counts = new Map<string, number>();
    for (let i = 0; i < 8_000; i += 1) counts.set(shardFor(8, String(i)), (counts.get(shardFor(8, String(i))) ?? 0) + 1);
    expect(counts.size).toBe(8);
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(200);
  });
});

describe('names', () => {
  test.each(['', 'A', '-a', '_a', 'a b', 'a.b', 'a*', 'a>', 'a\n', 'ä', 'x'.repeat(ID_LIMITS.nameLength + 1), '../a', 'a\u0000'])(
    '%j is no project and no edge',
    (name) => {
      expect(ProjectName.safeParse(name).success).toBe(false);
      expect(EdgeName.safeParse(name).success).toBe(false);
    },
  );

  test.each([
    [SandboxId, `sb-3-${'0'.repeat(19)}-edge-1`],
    [SandboxId, `sb-33-${'0'.repeat(20)}-edge-1`],
    [SandboxId, `sb-3-${'0'.repeat(20)}-`],
    [SandboxId, `sb-3-${'0'.repeat(20)}-edge-1\n`],
    [SandboxId, `sb-3-${'0'.repeat(20)}-${'e'.repeat(60)}`],
    [RequestId, `rq-3-${'g'.repeat(32)}`],
    [ExecId, 'ex-1'],
    [LayerDigest, 'sha256:abc'],
    [ImageName, '/debian'],
    [ImageName, 'a//b'],
    [ImageName, 'a/../b'],
    [ImageName, 'debian:'],
    [ImageName, ''],
    [ClientKey, 'a b'],
    [ClientKey, 'a\nb'],
    [ClientKey, ''],
    [ClientKey, 'k'.repeat(ID_LIMITS.clientKeyLength + 1)],
  ])('%# a malformed id is refused: %j', (schema, value) => {
    expect(schema.safeParse(value).success, String(value)).toBe(false);
  });

  test.each(['debian', 'team/tool:1.2', 'a/b/c:Latest_1', `${'x'.repeat(ID_LIMITS.imageNameLength)}`])('%s names an image', (name) => {
    expect(ImageName.safeParse(name).success).toBe(true);
  });

  test('a branded id that does not parse is a programmer’s error', () => {
    expect(() => parseSandboxId('sb-broken' as SandboxId)).toThrow(/not a sandbox id/);
  });
});

describe('the body hash', () => {
  const json = fc.jsonValue({ maxDepth: 4 });
  const reversed = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(reversed)
      : value !== null && typeof value === 'object'
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([k, v]) => [k, reversed(v)]),
          )
        : value;

  test('does not depend on the order of fields, and does on everything else', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(bodyHashOf(reversed(a))).toBe(bodyHashOf(a));
        const isSame = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        expect(bodyHashOf(a) === bodyHashOf(b)).toBe(isSame);
      }),
    );
  });
  const sorted = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(sorted)
      : value !== null && typeof value === 'object'
        ? {
            fields: Object.entries(value)
              .sort(([x], [y]) => (x < y ? -1 : 1))
              .map(([k, v]) => [k, sorted(v)]),
          }
        : value;

  test('tells a list from its order', () => expect(bodyHashOf({ argv: ['a', 'b'] })).not.toBe(bodyHashOf({ argv: ['b', 'a'] })));
});
