/** The job actor, as the host runs it. */
import { wireError } from '#bus/errors.ts';
import type { JobCommand, JobEvent, JobState } from '#bus/job/schema.ts';
import { readState, recordVersion } from '#bus/records.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideJob } from './job.decider.ts';
import { type JobEffect, jobDeadlines, pendingJobEffects } from './job.effects.ts';
import { evolveJob } from './job.evolve.ts';

export const jobDefinition: ActorDefinition<JobState, JobCommand, JobEvent, JobEffect> = {
  kind: 'job',
  schema: recordVersion('job'),
  decide: decideJob,
  evolve: evolveJob,
  pendingEffects: pendingJobEffects,
  deadlines: jobDeadlines,
  isOver: (state) => state.status === 'ended',
  parseState: (raw, schema) => readState('job', raw, schema),
  forgotten: ({ id }) => wireError('KEY_EXPIRED', `job ${id} ended long ago and was forgotten; use a new key`),
};
