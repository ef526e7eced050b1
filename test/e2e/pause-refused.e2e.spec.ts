/**
 * Pauses and resumes that cannot be, or meet something else: a node without memory, a lost lease, a snapshot, an end. Each is typed, and
 * leaves the sandbox whole: at rest if it rested. @paper §6.3
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { DsecClient, DsecError, Sandbox, SandboxState } from '#sdk/mod.ts';
import { firstLine } from '#test/helpers/commands.ts';
import { buildHolderLayer } from '#test/helpers/memory-holder.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { refusal } from '#test/helpers/refusal.ts';

/** More than any node has: whatever rests stays at rest. */
const ALL_MEMORY_MIB = 1 << 30;
const LEASE_MS = 2_000;
const PATIENCE = { timeout: 30_000, interval: 50 };

let host: TestPlatform;
let dsec: DsecClient;

givenPlatform({ overrides: { swapMiB: 1_024, leaseMs: LEASE_MS } }, async (given) => {
  ({ host, dsec } = given);
  await buildHolderLayer(host);
});

const box = (): Promise<Sandbox> => dsec.runContainer({ image: 'small', toolkits: ['holder'], memoryLimitMb: 256 });
/** Its state when it becomes so for the first or a later time, counted from its creation. */
const becomes = async (sandbox: Sandbox, status: string, time = 1): Promise<SandboxState> => {
  let seen = 0;
  let before: unknown;
  for await (const { state } of sandbox.events({ follow: true })) {
    if (state['status'] === status && before !== status) seen += 1;
    before = state['status'];
    if (seen === time) return state as unknown as SandboxState;
  }
  throw new Error(`its history ended, and it was ${status} ${seen} times`);
};
const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (thrown: DsecError) => thrown.code,
  );

/** A program that counts, seen from the host: looking wakes nothing. */
const ticking = async (sandbox: Sandbox): Promise<() => Promise<boolean>> => {
  await firstLine(await sandbox.start('i=0; while true; do i=$((i+1)); echo $i >/w/tick; [ $i = 1 ] && echo up; sleep 0.02; done'));
  const tick = (): string => readFileSync(join(host.dir, 'data/sandboxes', sandbox.id, 'upper/w/tick'), 'utf8');
  return async () => {
    const before = tick();
    await delay(300);
    return tick() !== before;
  };
};

/** A sandbox that holds memory, and whether that is what it was. */
const holding = async (): Promise<{ sandbox: Sandbox; isWhole: () => Promise<boolean> }> => {
  const sandbox = await box();
  const holder = await sandbox.start(['/opt/memory-holder', '64'], { stdin: 'open' });
  const filled = (await firstLine(holder)).split(' ')[1];
  const isWhole = async (): Promise<boolean> => {
    await holder.stdin.write('again\n');
    await holder.stdin.close();
    return (await holder.result()).stdout === `filled ${filled}\nsum ${filled}\n`;
  };
  return { sandbox, isWhole };
};

describe('a snapshot', () => {
  test('of a paused sandbox leaves it at rest; who asks meanwhile resumes it', async () => {
    const sandbox = await box();
    const ticks = await ticking(sandbox);
    await sandbox.files.write('/w/kept', 'kept');
    await sandbox.pause();
    const { snapshotId } = await sandbox.snapshot();
    expect([(await sandbox.refresh()).status, await ticks()]).toEqual(['paused', false]);
    await using copy = await dsec.runContainer({ image: { snapshot: snapshotId } });
    expect(Buffer.from(await copy.files.read('/w/kept')).toString()).toBe('kept');
    const [, answer] = await Promise.all([sandbox.snapshot(), becomes(sandbox, 'snapshotting', 2).then(() => sandbox.exec(['echo', 'here']))]);
    expect(answer.stdout).toBe('here\n');
    expect([(await sandbox.refresh()).status, await ticks()]).toEqual(['running', true]);
    await sandbox.delete();
  });

  test('under way: a pause and a resume say so, change nothing, and go afterwards', async () => {
    const sandbox = await box();
    const ticks = await ticking(sandbox);
    await sandbox.exec(['sh', '-c', 'for i in $(seq 3000); do echo $i >/w/$i; done']);
    const taking = sandbox.snapshot();
    await becomes(sandbox, 'snapshotting');
    const [paused, resumed] = await Promise.all([outcome(sandbox.pause()), outcome(sandbox.resume())]);
    expect(['done', 'INVALID_STATE']).toContain(paused);
    expect(['done', 'INVALID_STATE']).toContain(resumed);
    await using copy = await dsec.runContainer({ image: { snapshot: (await taking).snapshotId } });
    expect(Buffer.from(await copy.files.read('/w/3000')).toString()).toBe('3000\n');
    await sandbox.pause();
    expect([(await sandbox.refresh()).status, await ticks()]).toEqual(['paused', false]);
    await sandbox.resume();
    expect(await ticks()).toBe(true);
    await sandbox.delete();
  });
});

describe.concurrent('an end', () => {
  const ENDS: [string, (sandbox: Sandbox) => Promise<unknown>][] = [
    ['stop', (sandbox) => sandbox.stop()],
    ['delete', (sandbox) => sandbox.delete()],
  ];
  const isGone = async (sandbox: Sandbox): Promise<void> => {
    const last: string[] = [];
    for await (const { state } of sandbox.events()) last.push(String(state['status']));
    expect(last.at(-1)).toBe('stopped');
    expect(await refusal(sandbox.resume())).toMatchObject({ outcome: 'not_applied' });
  };

  test.each(ENDS)('%s, while it is being paused', async (_, end) => {
    const { sandbox } = await holding();
    const pausing = outcome(sandbox.pause());
    await becomes(sandbox, 'pausing');
    await end(sandbox);
    expect(['done', 'SANDBOX_ENDED']).toContain(await pausing);
    await isGone(sandbox);
  });

  test.each(ENDS)('%s, while it is being resumed', async (_, end) => {
    const { sandbox } = await holding();
    await sandbox.pause();
    const resuming = outcome(sandbox.resume());
    const asked = outcome(sandbox.exec(['sleep', '100']));
    await becomes(sandbox, 'resuming');
    await end(sandbox);
    expect(['done', 'SANDBOX_ENDED']).toContain(await resuming);
    expect(['SANDBOX_ENDED', 'done']).toContain(await asked);
    await isGone(sandbox);
  });

  test('a resume while it is being paused, a pause while it is being resumed: what was asked last holds', async () => {
    const { sandbox, isWhole } = await holding();
    const first = outcome(sandbox.pause());
    await becomes(sandbox, 'pausing');
    await Promise.all([first, sandbox.exec(['true'])]);
    expect((await sandbox.refresh()).status).toBe('running');
    await sandbox.pause();
    await Promise.all([outcome(sandbox.resume()), outcome(sandbox.pause())]);
    await vi.waitFor(async () => expect(['running', 'paused']).toContain((await sandbox.refresh()).status), PATIENCE);
    expect(await isWhole()).toBe(true);
    await sandbox.delete();
  });
});

test('a lost lease freezes all, and its return lets only those run that ran', async () => {
  const [running, paused] = await Promise.all([box(), box()]);
  const [runs, rests] = await Promise.all([ticking(running), ticking(paused)]);
  await paused.pause();
  const fences = (): number => readFileSync(host.logFile, 'utf8').split('"lease.fenced"').length;
  const before = fences();
  const { bus } = host.platform.pids();
  process.kill(bus, 'SIGSTOP');
  try {
    await vi.waitFor(() => expect(fences()).toBeGreaterThan(before), PATIENCE);
    await vi.waitFor(async () => expect(await runs()).toBe(false), PATIENCE);
    expect(await rests()).toBe(false);
  } finally {
    process.kill(bus, 'SIGCONT');
  }
  await vi.waitFor(async () => expect(await runs()).toBe(true), PATIENCE);
  expect([await rests(), (await paused.refresh()).status]).toEqual([false, 'paused']);
  expect((await paused.exec(['echo', 'here'])).stdout).toBe('here\n');
  expect(await rests()).toBe(true);
  await Promise.all([running.delete(), paused.delete()]);
});

test('a node without memory for it: NODE_FULL to each who asks, the sandbox rests on and is whole', async () => {
  await host.restart(undefined, { resumeFloorMiB: ALL_MEMORY_MIB });
  const { sandbox, isWhole } = await holding();
  const ticks = await ticking(sandbox);
  await sandbox.pause();
  expect(await refusal(sandbox.resume())).toMatchObject({ code: 'NODE_FULL', retry: 'later', outcome: 'not_applied' });
  const askers = Array.from({ length: 40 }, (_, i) => outcome(i % 2 ? sandbox.exec(['true']) : sandbox.files.write('/w/x', 'x')));
  expect(new Set(await Promise.all(askers))).toEqual(new Set(['NODE_FULL']));
  for await (const { id, error } of dsec.resumeMany({ ids: [sandbox.id] })) expect([id, error?.code]).toEqual([sandbox.id, 'NODE_FULL']);
  expect([(await sandbox.refresh()).status, await ticks()]).toEqual(['paused', false]);
  await host.restart();
  expect([(await sandbox.refresh()).status, await ticks()]).toEqual(['paused', false]);
  expect(await isWhole()).toBe(true);
  expect((await sandbox.refresh()).status).toBe('running');
  await sandbox.delete();
});
