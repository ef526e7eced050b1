import { expect, test } from 'vitest';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { sandboxForgettableAt } from './retention.ts';

const kept = (over: Partial<SandboxState>) =>
  sandboxForgettableAt({ status: 'stopped', endedAt: 1_000, forget: false, ...over } as SandboxState, { deletedMs: 10, endedMs: 500 });

test('what was deleted goes soon, what only ended stays for audits, what lives stays', () => {
  expect(kept({ forget: true })).toBe(1_010);
  expect(kept({})).toBe(1_500);
  expect(kept({ status: 'failed' })).toBe(1_500);
  expect(kept({ status: 'stopping', forget: true, endedAt: null })).toBeNull();
  expect(kept({ status: 'running', endedAt: null })).toBeNull();
});
