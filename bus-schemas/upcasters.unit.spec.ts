import { expect, test } from 'vitest';
import { DsecError } from './errors.ts';
import { RECORDS, type RecordKind, readEvent, readState, recordVersion } from './records.ts';
import { SAMPLES } from './testing/samples.ts';
import { newestVersion, UPCASTERS, type Upcaster, upcast } from './upcasters.ts';

/** A kind that has been through three versions: a renamed field, then a unit made explicit. */
const STEPS: readonly Upcaster[] = [
  ({ ttl, ...rest }) => ({ ...rest, v: 2, idleSeconds: ttl }),
  ({ idleSeconds, ...rest }) => ({ ...rest, v: 3, idleMs: (idleSeconds as number) * 1_000 }),
];
const lift = (message: Record<string, unknown>) => upcast('kind', message, 'message', STEPS);
const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof DsecError) return thrown.code;
    throw thrown;
  }
  return 'none';
};

test('a message of any version is lifted to the newest, and its input is left alone', () => {
  const old = Object.freeze({ v: 1, name: 'a', ttl: 3 });
  expect(lift(old)).toEqual({ v: 3, name: 'a', idleMs: 3_000 });
  expect(lift({ v: 2, name: 'a', idleSeconds: 3 })).toEqual({ v: 3, name: 'a', idleMs: 3_000 });
  expect(lift({ v: 3, idleMs: 3_000 })).toEqual({ v: 3, idleMs: 3_000 });
});

test('history from the future stops, and what has no version is malformed', () => {
  expect(codeOf(() => lift({ v: 4 }))).toBe('UNSUPPORTED_VERSION');
  for (const v of [undefined, null, '1', 0, -1, 1.5, Number.NaN, {}]) expect(codeOf(() => lift({ v }))).toBe('MALFORMED_MESSAGE');
  expect(codeOf(() => upcast('unheard-of', { v: 1 }, 'message'))).toBe('none');
  expect(codeOf(() => upcast('unheard-of', { v: 2 }, 'message'))).toBe('UNSUPPORTED_VERSION');
});

test.each(Object.keys(RECORDS) as RecordKind[])('%s: state and event rise together, and both are read by version', (kind) => {
  expect(newestVersion(`${kind}.event`)).toBe(recordVersion(kind));
  expect(UPCASTERS[`${kind}.state`]).toBeDefined();
  const state = SAMPLES['state']?.[kind];
  expect(readState(kind, state)).toEqual(readState(kind, state, recordVersion(kind)));
  expect(codeOf(() => readState(kind, state, recordVersion(kind) + 1))).toBe('UNSUPPORTED_VERSION');
  for (const raw of [null, [], 7, 'text', {}, { status: 'odd' }]) {
    expect(codeOf(() => readState(kind, raw))).toBe('MALFORMED_MESSAGE');
    expect(codeOf(() => readEvent(kind, raw))).toBe('MALFORMED_MESSAGE');
  }
});
