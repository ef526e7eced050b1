import { describe, expect, test } from 'vitest';
import type { JobCommand, JobEvent, JobState } from '#bus/job/schema.ts';
import { SandboxRequest } from '#bus/sandbox/spec.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { historyOf } from '../kernel/testing/given.ts';
import { jobDefinition } from './job.definition.ts';
import { address, create, LIFE_MS, pause, stop, T0 } from './testing/samples.ts';
import { memberOf } from './member.ts';

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
});
