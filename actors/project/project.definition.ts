/** The project actor, as the host runs it. It calls for no work: leases are settled by whoever serves IAM (`settlement.ts`). */
import { wireError } from '#bus/errors.ts';
import type { ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import { readState, recordVersion } from '#bus/records.ts';
import type { ActorDefinition } from '../kernel/definition.ts';
import { decideProject } from './project.decider.ts';
import { evolveProject } from './project.evolve.ts';

export const projectDefinition: ActorDefinition<ProjectState, ProjectCommand, ProjectEvent, never> = {
  kind: 'project',
  schema: recordVersion('project'),
  decide: decideProject,
  evolve: evolveProject,
  pendingEffects: () => [],
  deadlines: () => [],
  /** Never: its log is the audit of who was given what. */
  isOver: () => false,
  parseState: (raw, schema) => readState('project', raw, schema),
  forgotten: ({ id }) => wireError('INVALID_STATE', `project ${id} was forgotten; choose another name`),
};
