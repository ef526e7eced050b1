/** What a client may not ask for is refused at the border, by name, before anything happens. */
import { describe, expect, test } from 'vitest';
import { SPEC_LIMITS } from '../limits.ts';
import { GuestPath, SandboxRequest } from './spec.ts';

const issuesOf = (over: object): string[] => {
  const parsed = SandboxRequest.safeParse({ image: 'debian', ...over });
  return parsed.success ? [] : parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`);
};

test('a base is all that must be named; the rest has defaults', () => {
  expect(SandboxRequest.parse({ image: 'debian' })).toEqual({
    backend: 'container',
    image: 'debian',
    workspaces: [],
    toolkits: [],
    limits: {},
    lives: {},
    networkRules: {},
    initUser: 'root',
    env: {},
    labels: {},
    recordCommands: false,
    require: {},
    isolation: 'shared',
  });
});

describe('refused', () => {
  test.each([
    ['an unknown field', { imgae: 'debian' }],
    ['no image', { image: undefined }],
    ['an image with a line break', { image: 'debian\n' }],
    ['an unknown backend', { backend: 'jail' }],
    ['memory of zero', { limits: { memoryMiB: 0 } }],
    ['negative memory', { limits: { memoryMiB: -1 } }],
    ['memory in fractions', { limits: { memoryMiB: 4.5 } }],
    ['memory as text', { limits: { memoryMiB: '512' } }],
    ['memory without end', { limits: { memoryMiB: Number.POSITIVE_INFINITY } }],
    ['memory above any node', { limits: { memoryMiB: SPEC_LIMITS.memoryMiBMax + 1 } }],
    ['no CPU', { limits: { cpuMillis: 0 } }],
    ['no processes', { limits: { pids: 0 } }],
    ['swap in fractions', { limits: { swapMiB: 0.5 } }],
    ['no share of the CPU', { limits: { cpuWeight: 0 } }],
    ['more than the whole CPU', { limits: { cpuWeight: SPEC_LIMITS.cpuWeightMax + 1 } }],
    ['a disk too small for a file system', { limits: { diskMiB: SPEC_LIMITS.diskMiBMin - 1 } }],
    ['a disk above any file', { limits: { diskMiB: SPEC_LIMITS.diskMiBMax + 1 } }],
    ['no open files', { limits: { openFiles: 0 } }],
    ['an unknown limit', { limits: { disk: 1 } }],
    ['a running life of zero', { lives: { runningMs: 0 } }],
    ['a life of zero', { lives: { totalMs: 0 } }],
    ['a life above a week', { lives: { totalMs: SPEC_LIMITS.lifeMsMax + 1 } }],
    ['a label of 2 MiB', { labels: { job: 'x'.repeat(2 * 1024 * 1024) } }],
    ['a label key with a space', { labels: { 'a b': '1' } }],
    ['too many labels', { labels: Object.fromEntries(Array.from({ length: SPEC_LIMITS.labels + 1 }, (_, i) => [`l${i}`, ''])) }],
    ['a variable with "=" in its name', { env: { 'A=B': '1' } }],
    ['a variable with NUL', { env: { A: 'a\0b' } }],
    ['too large an environment', { env: { A: 'x'.repeat(SPEC_LIMITS.envBytes) } }],
    ['too many workspaces', { workspaces: Array.from({ length: SPEC_LIMITS.workspaces + 1 }, () => 'w') }],
    ['a user with a line break', { initUser: 'root\nmallory' }],
    ['an empty user', { initUser: '' }],
    ['a host name with a dot', { hostname: 'a.b' }],
    ['a rule for a wildcard', { networkRules: { '*': true } }],
  ])('%s', (_, over) => {
    expect(issuesOf(over)).not.toEqual([]);
  });

  test('says which field and why', () => {
    expect(issuesOf({ limits: { memoryMiB: 0 } })).toEqual([expect.stringMatching(/^limits\.memoryMiB: .*4/)]);
  });
});

test.each(['relative', '', '/a\nb', '/a\0b', `/${'é'.repeat(SPEC_LIMITS.pathBytes / 2 + 1)}`])('%j is no path', (path) => {
  expect(GuestPath.safeParse(path).success).toBe(false);
});
test.each(['/', '/a b', '/ä/ö', '/a/../b'])('%j is a path', (path) => {
  expect(GuestPath.safeParse(path).success).toBe(true);
});
test.each(['root', '_apt', '1000', '1000:1000', 'user.name-1'])('%s is a user', (initUser) => expect(issuesOf({ initUser })).toEqual([]));
