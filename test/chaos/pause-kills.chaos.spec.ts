/**
 * SIGKILL of the Edge, of the launcher, of both, in each state of a pause: what was asked comes to be, memory is what it was, a program
 * that counts leaves nothing out and does nothing twice, and at the end the kernel has nothing of it.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import type { Command, DsecClient, Sandbox } from '#sdk/mod.ts';
import { firstLine } from '#test/helpers/commands.ts';
import { buildHolderLayer } from '#test/helpers/memory-holder.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { launcherPid } from '#test/helpers/traces.ts';

const HELD_MIB = '48';
const BACK_WITHIN_MS = 30_000;
const swaps = (): number => readFileSync('/proc/swaps', 'utf8').split('\n').length;
const swapsBefore = swaps();

let host: TestPlatform;
let dsec: DsecClient;

/** Runs last: hooks that come after run from the last to the first. */
afterAll(() => {
  expect(swaps()).toBe(swapsBefore);
});
givenPlatform({ overrides: { swapMiB: 1_024 }, restartMaxMs: 100 }, async (given) => {
  ({ host, dsec } = given);
  await buildHolderLayer(host);
});

type Victim = 'edge' | 'launcher' | 'edge and launcher';

const kill = async (victim: Victim): Promise<void> => {
  const { edge } = host.platform.pids();
  if (edge === undefined) throw new Error('no Edge runs');
  if (victim.includes('launcher')) process.kill(launcherPid(host), 'SIGKILL');
  if (!victim.includes('edge')) return;
  process.kill(edge, 'SIGKILL');
  const giveUpAt = performance.now() + BACK_WITHIN_MS;
  while (host.platform.pids().edge === edge) {
    if (performance.now() > giveUpAt) throw new Error('the Edge is not back');
    await delay(10);
  }
};

class Subject {
  readonly sandbox: Sandbox;
  readonly #holder: Command;
  readonly #counter: Command;
  readonly #filled: string;

  private constructor(sandbox: Sandbox, holder: Command, counter: Command, filled: string) {
    this.sandbox = sandbox;
    this.#holder = holder;
    this.#counter = counter;
    this.#filled = filled;
  }

  static async make(): Promise<Subject> {
    const sandbox = await dsec.runContainer({ image: 'small', toolkits: ['holder'], memoryLimitMb: 128 });
    const holder = await sandbox.start(['/opt/memory-holder', HELD_MIB], { stdin: 'open' });
    const counter = await sandbox.start('i=0; while [ ! -e /w/enough ]; do i=$((i+1)); echo $i; sleep 0.02; done');
    return new Subject(sandbox, holder, counter, (await firstLine(holder)).split(' ')[1] ?? '');
  }

  /** Looking does not wake it: a program that rests prints nothing. */
  async rests(): Promise<void> {
    const printed = (await this.#counter.view()).stdout.totalBytes;
    await delay(300);
    expect((await this.#counter.view()).stdout.totalBytes).toBe(printed);
    expect((await this.sandbox.refresh()).status).toBe('paused');
  }

  /** Everything goes on where it was; the first command wakes it if need be. */
  async isWhole(): Promise<void> {
    expect((await this.sandbox.exec(['echo', 'here'])).stdout).toBe('here\n');
    await this.#holder.stdin.write('again\n');
    await this.#holder.stdin.close();
    expect((await this.#holder.result()).stdout).toBe(`filled ${this.#filled}\nsum ${this.#filled}\n`);
    await this.sandbox.exec(['touch', '/w/enough']);
    const counted = (await this.#counter.result()).stdout.trim().split('\n').map(Number);
    expect(counted).toEqual(counted.map((_, i) => i + 1));
    await this.sandbox.delete();
  }
}

test.each<[Victim]>([['edge'], ['launcher'], ['edge and launcher']])(
  '%s dies while a sandbox is being paused',
  async (victim) => {
    const subject = await Subject.make();
    const pausing = subject.sandbox.pause({ timeoutMs: 60_000 });
    await delay(Math.random() * 60); // before, in and after freezing and reclaiming
    await kill(victim);
    await pausing;
    await subject.rests();
    await subject.isWhole();
  },
  120_000,
);

test.each<[Victim]>([['edge'], ['launcher'], ['edge and launcher']])(
  '%s dies while a sandbox is paused',
  async (victim) => {
    const subject = await Subject.make();
    await subject.sandbox.pause();
    await kill(victim);
    await subject.rests();
    await subject.isWhole();
  },
  120_000,
);

test.each<[Victim]>([['edge'], ['launcher'], ['edge and launcher']])(
  '%s dies while a sandbox is being resumed',
  async (victim) => {
    const subject = await Subject.make();
    await subject.sandbox.pause();
    const resuming = subject.sandbox.resume({ timeoutMs: 60_000 });
    await delay(Math.random() * 20);
    await kill(victim);
    await resuming;
    expect((await subject.sandbox.refresh()).status).toBe('running');
    await subject.isWhole();
  },
  120_000,
);

test('the Edge dies while forty callers wake a sandbox: one resume, and each has its answer', async () => {
  const subject = await Subject.make();
  await subject.sandbox.pause();
  const asked = Array.from({ length: 40 }, (_, i) => subject.sandbox.exec(['sh', '-c', `echo ${i} >>/w/asked; echo ${i}`], { key: `ask-${i}` }));
  await delay(Math.random() * 20);
  await kill('edge');
  expect((await Promise.all(asked)).map(({ stdout }) => stdout)).toEqual(asked.map((_, i) => `${i}\n`));
  const done = (await subject.sandbox.exec(['cat', '/w/asked'])).stdout.trim().split('\n').map(Number);
  expect(done.sort((a, b) => a - b)).toEqual(asked.map((_, i) => i));
  const resumes: unknown[] = [];
  for await (const { events } of subject.sandbox.events()) resumes.push(...events.filter(({ type }) => type === 'SandboxResumed'));
  expect(resumes).toHaveLength(1);
  await subject.isWhole();
}, 120_000);
