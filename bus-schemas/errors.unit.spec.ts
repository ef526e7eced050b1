import { describe, expect, test } from 'vitest';
import { DsecError, ERRORS, ErrorCode, Fault, Outcome, Retry, toWireError, WireError, wireError } from './errors.ts';

const rows = Object.entries(ERRORS).map(([code, row]) => ({ code: code as ErrorCode, ...row }));

describe('the registry', () => {
  test.each(rows)('$code is complete', ({ code, fault, retry, outcome, http, exit }) => {
    expect(Fault.options).toContain(fault);
    expect(Retry.options).toContain(retry);
    expect(Outcome.options).toContain(outcome);
    expect(http).toBeGreaterThanOrEqual(400);
    expect(http).toBeLessThan(600);
    expect(exit).toBeGreaterThan(0);
    expect(exit).toBeLessThan(128 + 65);
    expect(ErrorCode.parse(code)).toBe(code);
    expect(code).toMatch(/^[A-Z][A-Z_]*[A-Z]$/);
  });

  test('what is unknown may be repeated under the same name, unless the caller gave it up or it ends the same way again', () => {
    const final = ['CANCELLED', 'UNSAFE_ENTRY', 'BAD_ARCHIVE', 'FILE_FAILED'];
    for (const { code, outcome, retry } of rows) if (outcome === 'unknown' && !final.includes(code)) expect(retry, code).not.toBe('never');
  });

  test('capacity, time-out and node failure are three codes', () => {
    expect(new Set(['NO_CAPACITY', 'DEADLINE_EXCEEDED', 'EDGE_UNAVAILABLE', 'SANDBOX_LOST'].map((c) => ErrorCode.parse(c))).size).toBe(4);
  });

  test('nobody is scored for what the platform did', () => {
    for (const code of [
      'NO_CAPACITY',
      'NODE_FULL',
      'SANDBOX_LOST',
      'LAUNCH_FAILED',
      'EDGE_UNAVAILABLE',
      'BUS_UNAVAILABLE',
      'INTERNAL',
      'DEADLINE_EXCEEDED',
    ] as const)
      expect(ERRORS[code].fault, code).toBe('infra');
  });
});

describe('a wire error', () => {
  test.each(rows)('$code takes its row and survives the wire', ({ code, fault, retry, outcome }) => {
    const error = wireError(code, 'what, and what to do next', { details: { field: 1 }, traceId: 't' });
    expect(error).toMatchObject({ code, fault, retry, outcome });
    expect(WireError.parse(JSON.parse(JSON.stringify(error)))).toEqual(error);
    expect(new DsecError(error).toWire()).toEqual(error);
    expect(DsecError.of(code, 'm').toWire()).toEqual(wireError(code, 'm'));
  });

  test('differs from its row only where it is said to', () => {
    expect(wireError('DEADLINE_EXCEEDED', 'm', { outcome: 'not_applied', retry: 'never', fault: 'policy' })).toEqual({
      code: 'DEADLINE_EXCEEDED',
      message: 'm',
      outcome: 'not_applied',
      retry: 'never',
      fault: 'policy',
      details: {},
    });
  });

  test('comes from whatever was thrown', () => {
    expect(toWireError(DsecError.of('NO_SPACE', 'full'))).toMatchObject({ code: 'NO_SPACE', message: 'full' });
    expect(toWireError(new TypeError('x is not a function'))).toMatchObject({ code: 'INTERNAL', message: 'x is not a function' });
    for (const thrown of [undefined, null, 7, 'text', {}]) expect(toWireError(thrown).code).toBe('INTERNAL');
  });

  test('keeps its cause for logs', () => {
    const cause = new Error('ENOSPC');
    expect(DsecError.of('NO_SPACE', 'full', { cause }).cause).toBe(cause);
  });
});
