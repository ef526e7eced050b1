/** The proof against the schemas themselves: it says yes only where the schema would return the very same, and says it where it matters. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { API } from './api/schema.ts';
import { Beat } from './edge/schema.ts';
import { Commit, CommandEnvelope } from './envelope.ts';
import { OPS } from './op/schema.ts';
import { proofOf, safeParse } from './proof.ts';
import { RECORDS } from './records.ts';
import { RequestBusCommand } from './request/schema.ts';
import { LaunchSandboxes, ReleaseSandboxes, SandboxBusCommand } from './sandbox/commands.ts';
import { SandboxRequest } from './sandbox/spec.ts';
import { mutated } from './testing/mutated.ts';
import { SAMPLES } from './testing/samples.ts';

const KINDS: Readonly<Record<string, z.ZodType>> = {
  command: CommandEnvelope,
  commit: Commit,
  beat: Beat,
  'sandbox-bus-command': SandboxBusCommand,
  'launch-sandboxes': LaunchSandboxes,
  'release-sandboxes': ReleaseSandboxes,
  'sandbox-request': SandboxRequest,
  'request-bus-command': RequestBusCommand,
};

type Case = { readonly name: string; readonly schema: z.ZodType; readonly sample: unknown };
const ofKinds = Object.entries(KINDS).flatMap(([kind, schema]) =>
  Object.entries(SAMPLES[kind] ?? {}).map(([name, sample]): Case => ({ name: `${kind} ${name}`, schema, sample })),
);
const ofStates = Object.entries(SAMPLES['state'] ?? {}).map(
  ([name, sample]): Case => ({ name: `state ${name}`, schema: RECORDS[name as keyof typeof RECORDS].state, sample }),
);
const ofCalls = Object.entries({ api: API, op: OPS }).flatMap(([group, table]) =>
  Object.entries(table).flatMap(([name, pair]) =>
    (['request', 'response'] as const).map(
      (side): Case => ({ name: `${group} ${name}.${side}`, schema: pair[side], sample: SAMPLES[group]?.[`${name}.${side}`] }),
    ),
  ),
);
const OFTEN =
  /^(command|commit|beat|[a-z]+-bus-command|launch-|release-|sandbox-request|state (sandbox|request|edge)|api (create|get|info|stop)\.|op (exec|start|read|wait)\.)/;
const CASES = [...ofKinds, ...ofStates, ...ofCalls];

/** Proved is: the schema takes it, and returns the same. Answers whether it was. */
const holds = (schema: z.ZodType, raw: unknown): boolean => {
  if (!proofOf(schema)(raw)) return false;
  expect(schema.parse(raw)).toEqual(raw);
  return true;
};
const asRead = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('a proof', () => {
  test('is had of every message that many sandboxes make many of', () => {
    const many = CASES.filter(({ name }) => OFTEN.test(name));
    expect(many.length).toBeGreaterThan(30);
    const unproved = many.filter(({ schema, sample }) => !holds(schema, asRead(schema.parse(sample)))).map(({ name }) => name);
    expect(unproved).toEqual([]);
  });

  test.each(CASES)('never says of $name what the schema does not', ({ schema, sample }) => {
    fc.assert(
      fc.property(mutated(schema.parse(sample)), (message) => void holds(schema, asRead(message))),
      { numRuns: 300 },
    );
  });

  test('is had of some of what is not quite right, so that the above says something', () => {
    let proved = 0;
    for (const { schema, sample } of CASES)
      fc.assert(
        fc.property(mutated(schema.parse(sample)), (message) => {
          if (holds(schema, asRead(message))) proved += 1;
        }),
        { numRuns: 50 },
      );
    expect(proved).toBeGreaterThan(200);
  });

  test.each([
    ['a transformation', z.string().transform((s) => s.length), 'x'],
    ['a conversion', z.coerce.number(), 1],
    ['a format with a library check', z.email(), 'a@b.example'],
    ['a repair', z.string().catch('x'), 'x'],
    ['a pattern that remembers', z.string().regex(/x/g), 'x'],
    ['an option after one that leaves fields out', z.union([z.object({}), z.object({ a: z.string() })]), { a: 'x' }],
    ['a field that is absent and has a default', z.object({ a: z.string().default('x') }), {}],
    [
      'a field that is absent, with a condition on absence',
      z.object({
        a: z
          .string()
          .optional()
          .refine((v) => v !== undefined),
      }),
      {},
    ],
    ['an enumerated key', z.record(z.enum(['a', 'b']), z.string()), { a: 'x' }],
    ['an unknown field', z.object({ a: z.string() }), { a: 'x', b: 1 }],
    ['a missing field of any type', z.looseObject({ a: z.unknown() }), {}],
    ['a check that fails', z.array(z.number()).max(1), [1, 2]],
  ])('is not had of %s', (_, schema, value) => {
    expect(proofOf(schema)(value)).toBe(false);
  });

  test('missing, the schema is asked: defaults are filled in and what is wrong is said', () => {
    const schema = z.object({ a: z.string().default('x') });
    expect(safeParse(schema, {})).toMatchObject({ success: true, data: { a: 'x' } });
    expect(safeParse(schema, { a: 1 }).success).toBe(false);
  });
});
