import { describe, expect, test } from 'vitest';
import type { JobCommand, JobEvent, JobState } from '#bus/job/schema.ts';
import { SandboxRequest } from '#bus/sandbox/spec.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { historyOf } from '../kernel/testing/given.ts';
import { jobDefinition } from './job.definition.ts';
import { address, create, jobId, LIFE_MS, members, pause, stop, T0 } from './testing/samples.ts';
import { memberOf, refusalOfMember, shareOf, totalWithin } from './member.ts';

const jobAfter = (...commands: JobCommand[]): JobState =>
  fold<JobState, JobEvent>(
    jobDefinition,
    historyOf(
      jobDefinition,
      address,
      commands.map((command, i) => ({ command, at: T0 + i })),
    ),
  ) as JobState;
const at = (ms: number) => (T0 + ms) as TimestampMs;
const defaults = {
  limits: { memoryMiB: 256, pids: 64 },
  lives: { idleMs: 60_000 },
  networkRules: { 'pypi.org': true },
  env: { A: 'job', B: 'job' },
  labels: { run: '7' },
};
const asked = SandboxRequest.parse({ image: 'debian', limits: { memoryMiB: 512 }, env: { A: 'own' }, labels: { x: 'y' } });

describe('a member of a job', () => {
  test('gets the defaults for what it leaves out, and never lives longer than the job', () => {
    const job = jobAfter(create('a', { defaults } as never));
    expect(memberOf(job, asked, at(1_000))).toMatchObject({
      limits: { memoryMiB: 512, pids: 64 },
      lives: { idleMs: 60_000, totalMs: LIFE_MS - 1_000 },
      networkRules: { 'pypi.org': true },
      env: { A: 'own', B: 'job' },
      labels: { run: '7', x: 'y', 'dsec/job': job.id },
    });
    const short = SandboxRequest.parse({ image: 'debian', lives: { totalMs: 5_000 } });
    expect(memberOf(job, short, at(0)).lives.totalMs).toBe(5_000);
  });

  test('is refused by a job that ends, has ended, rests, or is at its deadline', () => {
    expect(() => memberOf(jobAfter(create(), stop), asked, at(5))).toThrow(expect.objectContaining({ code: 'JOB_ENDED' }));
    expect(() => memberOf(jobAfter(create()), asked, at(LIFE_MS - 10))).toThrow(expect.objectContaining({ code: 'JOB_ENDED' }));
    expect(() => memberOf(jobAfter(create(), pause), asked, at(5))).toThrow(expect.objectContaining({ code: 'INVALID_STATE', retry: 'never' }));
  });

  test('is refused also when it surfaces later: by a job that ends, has ended, or is forgotten; not by one that rests', () => {
    const ending = jobAfter(create(), stop);
    const ended = jobAfter(create(), stop, members('ended', 1));
    for (const job of [ending, ended, null])
      expect(refusalOfMember(jobId, job)).toMatchObject({ code: 'JOB_ENDED', retry: 'never', outcome: 'not_applied', details: { job: jobId } });
    expect(refusalOfMember(jobId, ended)?.message).toContain('ended (requested)');
    for (const job of [jobAfter(create()), jobAfter(create(), pause)]) expect(refusalOfMember(jobId, job)).toBeNull();
  });

  test('is extended up to the end of its job and no further', () => {
    const job = jobAfter(create());
    expect(totalWithin(job, 1_000 as never, at(10))).toBe(1_000);
    expect(totalWithin(job, (2 * LIFE_MS) as never, at(10))).toBe(LIFE_MS - 10);
    expect(() => totalWithin(jobAfter(create(), stop), 1_000 as never, at(10))).toThrow(expect.objectContaining({ code: 'JOB_ENDED' }));
  });

  test('counts in the share of its job, where that has one', () => {
    expect(shareOf(jobAfter(create()))).toBeUndefined();
    const share = { sandboxes: null, memoryMiB: 64, cpuMillis: null, diskMiB: null };
    expect(shareOf(jobAfter(create('a', { share })))).toBe(jobId);
  });
});
