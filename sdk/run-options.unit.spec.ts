/** What the caller wrote is checked in the caller's words, before anything is sent. */
import { describe, expect, test } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import { SandboxRequest } from '#bus/sandbox/spec.ts';
import { execOrder, startOrder } from './exec/exec-options.ts';
import { type RunOptions, groupSize, orderOf, waitOptionsOf } from './run-options.ts';

const errorOf = (work: () => unknown): DsecError => {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof DsecError) return thrown;
    throw thrown;
  }
  throw new Error('it was accepted');
};

test('the options of the paper become the wire’s units', () => {
  const options: RunOptions = {
    image: 'debian',
    workspaces: ['repo:1'],
    toolkits: [`sha256:${'a'.repeat(64)}`],
    memoryLimitMb: 4_096,
    cpuCoresLimit: 0.5,
    pidsLimit: 128,
    swapLimitMb: 64,
    cpuWeight: 200,
    diskLimitMb: 512,
    openFilesLimit: 256,
    outputLimitBytes: 4_096,
    ttlRunning: 60,
    ttlRunningStop: 300,
    ttlTotal: 1.5,
    networkRules: { npm: false, pypi: true },
    initUser: 'root',
    labels: { job: 'j1' },
    key: 'k',
  };
  const { spec, key } = orderOf(options);
  expect(key).toBe('k');
  expect(SandboxRequest.parse(spec)).toMatchObject({
    image: 'debian',
    limits: { memoryMiB: 4_096, swapMiB: 64, cpuMillis: 500, cpuWeight: 200, pids: 128, diskMiB: 512, openFiles: 256, outputBytes: 4_096 },
    lives: { totalMs: 1_500, runningMs: 60_000, idleMs: 300_000 },
    networkRules: { npm: false, pypi: true },
    backend: 'container',
  });
});

test('what is undefined is absent, and null is no idle limit', () => {
  expect(orderOf({ image: 'debian', env: undefined, ttlRunning: null, ttlRunningStop: null }).spec).toEqual({
    image: 'debian',
    limits: {},
    lives: { runningMs: null, idleMs: null },
  });
});

describe('refused, naming the field', () => {
  test.each<[string, object]>([
    ['image', { image: '' }],
    ['image', { image: 'Not A Name' }],
    ['memoryLimitMb', { memoryLimitMb: 0 }],
    ['memoryLimitMb', { memoryLimitMb: -1 }],
    ['memoryLimitMb', { memoryLimitMb: 4.5 }],
    ['memoryLimitMb', { memoryLimitMb: Number.NaN }],
    ['cpuCoresLimit', { cpuCoresLimit: 0 }],
    ['pidsLimit', { pidsLimit: 1 }],
    ['diskLimitMb', { diskLimitMb: 1 }],
    ['cpuWeight', { cpuWeight: 0 }],
    ['openFilesLimit', { openFilesLimit: 1 }],
    ['outputLimitBytes', { outputLimitBytes: -1 }],
    ['ttlRunning', { ttlRunning: 0 }],
    ['ttlRunningStop', { ttlRunningStop: 0 }],
    ['ttlTotal', { ttlTotal: 8 * 24 * 3_600 }],
    ['initUser', { initUser: 'root\n' }],
    ['env.A=B', { env: { 'A=B': '1' } }],
    ['labels.k', { labels: { k: 'x'.repeat(2 * 1024 * 1024) } }],
    ['hostname', { hostname: 'a.b' }],
    ['workspaces.1', { workspaces: ['ok', 'a\nb'] }],
    ['networkRules.UPPER', { networkRules: { UPPER: true } }],
    ['key', { key: 'with space' }],
  ])('%s', (field, wrong) => {
    const error = errorOf(() => orderOf({ image: 'debian', ...wrong }));
    expect([error.code, error.outcome, new Set(error.details['fields'] as string[])]).toEqual(['INVALID_ARGUMENT', 'not_applied', new Set([field])]);
    expect(error.message).toContain(field.split('.')[0]);
    expect(error.message.length).toBeLessThan(1_100);
  });

  test('an unknown field', () => {
    expect(errorOf(() => orderOf({ image: 'debian', memoryMb: 1 } as RunOptions))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('memoryMb'),
    });
  });

  test('labels and env that are each fine and together too large', () => {
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`${'k'.repeat(60)}${n}`, 'v'.repeat(255)]));
    const env = Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`E${n}`, '"'.repeat(2_100)]));
    expect(errorOf(() => orderOf({ image: 'debian', labels, env })).code).toBe('PAYLOAD_TOO_LARGE');
  });

  test.each([0, -1, 1.5, Number.POSITIVE_INFINITY])('timeoutMs %s', (timeoutMs) => {
    expect(errorOf(() => waitOptionsOf({ timeoutMs })).details['fields']).toEqual(['timeoutMs']);
  });

  test.each([0, -1, 1.5, 32_769])('count %s', (count) => {
    expect(errorOf(() => groupSize(count)).details['fields']).toEqual(['count']);
  });

  test.each<[string, () => unknown]>([
    ['cwd', () => execOrder({ argv: ['ls'] }, { cwd: '/a\nb' })],
    ['cwd', () => execOrder({ argv: ['ls'] }, { cwd: 'relative' })],
    ['timeoutMs', () => execOrder({ argv: ['ls'] }, { timeoutMs: 0 })],
    ['argv', () => execOrder({ argv: [] }, {})],
    ['argv.1', () => execOrder({ argv: ['ls', 'a\0b'] }, {})],
    ['shell', () => execOrder({ shell: 'x'.repeat(3 * 1024 * 1024) }, {})],
    ['user', () => startOrder({ argv: ['ls'] }, { user: 'a b' })],
  ])('a command’s %s', (field, work) => {
    const error = errorOf(work);
    expect([error.code, error.details['fields']]).toEqual(['INVALID_ARGUMENT', [field]]);
  });
});

test('stdin travels in the request while it is small, beside it when it is large', () => {
  expect(execOrder({ argv: ['cat'] }, {})).toMatchObject({ wire: { stdin: 'none' }, body: undefined, feed: undefined });
  const empty = execOrder({ argv: ['cat'] }, { stdin: '' });
  expect([empty.wire.stdin, empty.body?.byteLength, empty.feed]).toEqual(['bytes', 0, undefined]);
  const large = execOrder({ argv: ['cat'] }, { stdin: new Uint8Array(1024 * 1024) });
  expect([large.wire.stdin, large.body, large.feed?.byteLength]).toEqual(['open', undefined, 1024 * 1024]);
});
