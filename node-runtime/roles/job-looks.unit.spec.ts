/** One look at a job answers only those who asked before it began: a stop that came in between is not missed. */
import { expect, test } from 'vitest';
import type { ProjectName } from '#bus/ids.ts';
import { PLATFORM_LABELS } from '#bus/sandbox/spec.ts';
import { fold } from '#actors/kernel/definition.ts';
import { historyOf } from '#actors/kernel/testing/given.ts';
import { jobDefinition } from '#actors/job/job.definition.ts';
import { address, create, jobId, stop, T0 } from '#actors/job/testing/samples.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { JobLooks } from './job-looks.ts';

const project = 'acme' as ProjectName;
const member = { labels: { [PLATFORM_LABELS.job]: jobId } };
const living = historyOf(jobDefinition, address, [{ command: create(), at: T0 }]);
const ended = historyOf(jobDefinition, address, [
  { command: create(), at: T0 },
  { command: stop, at: T0 + 1 },
]);
const stored = (events: typeof living): StoredCommit =>
  ({ address, sequence: events.length, commit: { version: 1, schema: 1, state: fold(jobDefinition, events) } }) as unknown as StoredCommit;

test('those who ask at once share a look; whoever asks while one is under way waits for the next', async () => {
  let log: StoredCommit | null = stored(living);
  const answers: (() => void)[] = [];
  const looks = new JobLooks({
    last: () => {
      const seen = log;
      return new Promise((resolve) => answers.push(() => resolve(seen)));
    },
  });
  const early = [looks.refusal(project, member), looks.refusal(project, member)];
  await Promise.resolve();
  await Promise.resolve();
  expect(answers).toHaveLength(1);
  log = stored(ended); // while the first look is on its way
  const late = looks.refusal(project, member);
  await Promise.resolve();
  await Promise.resolve();
  expect(answers).toHaveLength(2);
  for (const answer of answers) answer();
  expect(await Promise.all(early)).toEqual([null, null]);
  expect(await late).toMatchObject({ code: 'JOB_ENDED', details: { job: jobId } });
  log = null; // forgotten long ago
  const gone = looks.refusal(project, member);
  await Promise.resolve();
  await Promise.resolve();
  answers.at(-1)?.();
  expect(await gone).toMatchObject({ code: 'JOB_ENDED' });
});

test('a sandbox of no job is nobody’s concern', async () => {
  const looks = new JobLooks({ last: () => Promise.reject(new Error('nobody is to be asked')) });
  expect(await looks.refusal(project, { labels: { 'dsec/job': 'not-an-id' } })).toBeNull();
  expect(await looks.refusal(project, { labels: {} })).toBeNull();
});
