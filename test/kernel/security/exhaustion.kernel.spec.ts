/**
 * A sandbox that takes all it can of one thing: it stops at a bound of its own, and a neighbour and the host still have theirs.
 *
 * Linux counts some of these per user of the host, not per cgroup; two such users must not be the same.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '#sdk/mod.ts';
import { Lab, type Outcomes } from './lab.ts';

const MEMORY_MIB = 128;
const PIDS = 100;
/** More than any bound that is expected below, and little enough to be harmless should one be missing. */
const TRIES = { many: 200_000, some: 5_000, few: 14 } as const;

let lab: Lab;
let neighbour: Sandbox;

beforeAll(async () => {
  lab = await Lab.open();
  neighbour = await lab.sandbox();
});
afterAll(async () => lab?.close());

type Hog = { readonly box: Sandbox; readonly took: Outcomes; end(): Promise<void> };

/** Starts a hog, and waits until it has what it can get and holds it. `took` is empty when it was killed. */
const hog = async (kind: string, count: number): Promise<Hog> => {
  const box = await lab.sandbox({ memoryLimitMb: MEMORY_MIB, pidsLimit: PIDS });
  const command = await box.start(['/probe/exhaust', kind, String(count), 'hold'], { timeoutMs: 60_000 });
  let text = '';
  for await (const piece of command.stdout.text()) {
    text += piece;
    if (text.includes('amount')) break;
  }
  return {
    box,
    took: new Map(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t', 2) as [string, string]),
    ),
    end: async () => {
      await box.stop();
    },
  };
};

const expectOthersUnharmed = async (kind: string): Promise<void> => {
  const enough = expect.objectContaining({ taken: '1', stopped: 'enough' });
  expect(Object.fromEntries(await lab.inside(neighbour, ['exhaust', kind, '1']))).toEqual(enough);
  expect(Object.fromEntries(lab.onHost('exhaust', kind, '1'))).toEqual(enough);
};

describe('what is counted', () => {
  const kinds: [kind: string, count: number, stopped: string, atMost: number][] = [
    ['inotify', TRIES.some, 'EMFILE', 128],
    ['signal', TRIES.many, 'EAGAIN', 100_000],
    ['queue', TRIES.some, 'EMFILE', 64],
    ['terminal', TRIES.some, 'ENOSPC', 128],
    ['process', TRIES.some, 'EAGAIN', PIDS],
    ['descriptor', TRIES.many, 'EMFILE', 65_536],
    ['locked page', TRIES.many, 'ENOMEM', 8_192],
  ];
  test.each(kinds)('%s', async (kind, count, stopped, atMost) => {
    const { box, took, end } = await hog(kind, count);
    expect(took.get('stopped')).toBe(stopped);
    expect(Number(took.get('taken'))).toBeLessThanOrEqual(atMost);
    await expectOthersUnharmed(kind);
    if (kind !== 'process') expect((await box.exec(['true'], { timeoutMs: 10_000 })).ok).toBe(true);
    await end();
    expect((await lab.inside(neighbour, ['exhaust', kind, '2'])).get('taken')).toBe('2');
  });
});

describe('what is memory', () => {
  const FULL_PIPES = 1_000;
  test.each([['memory'], ['shared memory'], ['inode']])('%s: the sandbox’s own processes are killed', async (kind) => {
    const { took, end } = await hog(kind, TRIES.many);
    expect(took.get('taken')).toBeUndefined();
    await expectOthersUnharmed(kind === 'inode' ? 'descriptor' : kind);
    await end();
  });

  test.each([
    ['pipe', FULL_PIPES],
    ['watch', TRIES.some],
  ] as const)('%s: held within the limit', async (kind, count) => {
    const { took, end } = await hog(kind, count);
    expect(took.get('stopped')).toBe('enough');
    await expectOthersUnharmed('pipe');
    await end();
  });

  test('buffers of sockets are bounded too, where the kernel counts them apart', async () => {
    const { took, end } = await hog('connection', TRIES.few);
    expect(Number(took.get('amount')) / 2 ** 20).toBeLessThan(MEMORY_MIB / 2);
    const unbounded = lab.onHost('exhaust', 'connection', String(TRIES.few));
    expect(Number(unbounded.get('amount')) / 2 ** 20).toBeGreaterThan((MEMORY_MIB * 3) / 4); // control
    await expectOthersUnharmed('connection');
    await end();
  });
});

test('a fork bomb with half a processor stops at its limit; the neighbour and its own sandbox still take commands', async () => {
  const box = await lab.sandbox({ cpuCoresLimit: 0.5, pidsLimit: PIDS, memoryLimitMb: MEMORY_MIB });
  const bomb = await box.start('bomb() { bomb | bomb & }; bomb; sleep 1000', { timeoutMs: 5_000 });
  for (let command = 0; command < 20; command++) expect((await neighbour.exec(['true'], { timeoutMs: 20_000 })).ok).toBe(true);
  expect(await bomb.wait()).toMatchObject({ reason: 'timeout' });
  expect((await box.exec(['true'], { timeoutMs: 20_000 })).ok).toBe(true);
  await box.stop();
});
