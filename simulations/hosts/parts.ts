/**
 * The production code that a cluster is put together from. Tests replace one part by a broken one, to see that its checker finds
 * it; a comparison of policies replaces `choose`.
 */
import type { Capacity, EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import type { JobCommand, JobEvent, JobState } from '#bus/job/schema.ts';
import type { ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import type { RequestCommand, RequestEvent, RequestState } from '#bus/request/schema.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { Admission } from '#actors/edge/admission.ts';
import { edgeDefinition } from '#actors/edge/edge.definition.ts';
import type { ActorDefinition, Effect } from '#actors/kernel/definition.ts';
import { ActorHost } from '#actors/kernel/host.ts';
import { choose } from '#actors/placement/choose.ts';
import { jobDefinition } from '#actors/job/job.definition.ts';
import type { JobEffect } from '#actors/job/job.effects.ts';
import { LeaseBook } from '#actors/project/lease-book.ts';
import { projectDefinition } from '#actors/project/project.definition.ts';
import { UsageFold } from '#actors/project/usage.ts';
import { requestDefinition } from '#actors/request/request.definition.ts';
import { newRequestEffects, type RequestEffect } from '#actors/request/request.effects.ts';
import { sandboxDefinition } from '#actors/sandbox/sandbox.definition.ts';
import type { SandboxEffect } from '#actors/sandbox/sandbox.effects.ts';
import { Machine } from '../ports/machine.ts';

export type MakeHost = <S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect>(
  definition: ActorDefinition<S, C, E, F>,
) => ActorHost<S, C, E, F>;

export type Parts = {
  readonly sandbox: ActorDefinition<SandboxState, SandboxCommand, SandboxEvent, SandboxEffect>;
  readonly request: ActorDefinition<RequestState, RequestCommand, RequestEvent, RequestEffect>;
  /** What a placement sends of what it has just decided. */
  readonly newEffects: typeof newRequestEffects;
  readonly edge: ActorDefinition<EdgeState, EdgeCommand, EdgeEvent, never>;
  readonly project: ActorDefinition<ProjectState, ProjectCommand, ProjectEvent, never>;
  readonly job: ActorDefinition<JobState, JobCommand, JobEvent, JobEffect>;
  /** What IAM reads of the log, and what a placement spends from. */
  readonly usage: () => UsageFold;
  readonly book: () => LeaseBook;
  /** Whether placements ask for room at all; only a seeded bug leaves it out. */
  readonly asksForRoom: boolean;
  readonly host: MakeHost;
  readonly admission: (capacity: Capacity) => Admission;
  readonly machine: (...made: ConstructorParameters<typeof Machine>) => Machine;
  readonly choose: typeof choose;
  /** Whether a placement lays its own decisions over what beats say; only comparisons turn it off. */
  readonly overlay: boolean;
};

export const PRODUCTION: Parts = {
  sandbox: sandboxDefinition,
  request: requestDefinition,
  newEffects: newRequestEffects,
  edge: edgeDefinition,
  project: projectDefinition,
  job: jobDefinition,
  usage: () => new UsageFold(),
  book: () => new LeaseBook(),
  asksForRoom: true,
  host: (definition) => new ActorHost(definition),
  admission: (capacity) => new Admission(capacity),
  machine: (...made) => new Machine(...made),
  choose,
  overlay: true,
};
