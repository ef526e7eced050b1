/**
 * Decides every command a sandbox can get, in every state it can be in: accepted, ignored with a reason, or rejected.
 *
 * Stop and delete are goals: legal from every state, repeatable, always ending (INV-STOP). Everything that arrives twice is
 * ignored the second time (INV-IDEM). Does not decide whether the node has room: that is admission, before `CreateSandbox`;
 * nor what to do about a state: that is `sandbox.effects.ts`.
 * @paper §2.3 §6.3
 */
import { wireError } from '#bus/errors.ts';
import { SandboxBusCommand, type SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { parseSandboxId, SandboxId } from '#bus/ids.ts';
import { addMs } from '#bus/units.ts';
import { accept, type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { decideClientCommand } from './sandbox.client-commands.ts';
import { decideReport, firstSteps, type SandboxReport } from './sandbox.reports.ts';

type Create = Extract<SandboxCommand, { type: 'CreateSandbox' }>;
type SandboxDecision = Decision<SandboxEvent>;

export const decideSandbox = (state: SandboxState | null, command: SandboxCommand, context: DecisionContext): SandboxDecision => {
  if (command.type === 'CreateSandbox') return state ? createAgain(state, command) : create(command, context);
  if (!state) return onNothing(command, context);
  if (ENDED_STATUSES.has(state.status)) return onEnded(state, command, context);
  return isFromClient(command) ? decideClientCommand(state, command, context.at) : decideReport(state, command, context.at);
};

const CLIENT_TYPES: ReadonlySet<string> = new Set(SandboxBusCommand.options.map((option) => option.shape.type.value));
const isFromClient = (command: Exclude<SandboxCommand, Create>): command is Exclude<SandboxCommand, Create | SandboxReport> => CLIENT_TYPES.has(command.type);

/** One commit takes a new sandbox as far as it can go without waiting, so that a create costs two commits. */
const create = (command: Create, { address, at }: DecisionContext): SandboxDecision => {
  const id = SandboxId.safeParse(address.id);
  if (!id.success) return reject(wireError('INVALID_ARGUMENT', `${address.id} is not a sandbox id; placement makes ids with sandboxIdFor`));
  const { requestId, index, attempt, spec, slot, generation } = command;
  const admitted: SandboxEvent = {
    type: 'SandboxAdmitted',
    at,
    id: id.data,
    project: address.project,
    edge: parseSandboxId(id.data).edge,
    requestId,
    index,
    attempt,
    spec,
    slot,
    generation,
    totalDeadlineAt: addMs(at, spec.lives.totalMs),
    heldUntil: command.heldUntil,
    forkedFrom: command.forkedFrom ?? null,
  };
  if (command.heldUntil !== null) return accept<SandboxEvent>(admitted);
  return accept<SandboxEvent>(admitted, ...firstSteps(command.layersLocal, at));
};

const createAgain = (state: SandboxState, { requestId, index, attempt }: Create): SandboxDecision =>
  state.requestId === requestId && state.index === index && state.attempt === attempt
    ? ignore('this sandbox has already been created by the same request')
    : reject(
        wireError('INVALID_STATE', `${state.id} already belongs to request ${state.requestId}; create under another key`, {
          details: { requestId: state.requestId },
        }),
      );

const onNothing = (command: Exclude<SandboxCommand, Create>, { address }: DecisionContext): SandboxDecision =>
  isFromClient(command)
    ? reject(wireError('SANDBOX_NOT_FOUND', `there is no sandbox ${address.id} in project ${address.project}; it may have been deleted`))
    : ignore('no such sandbox: the report is about one that was forgotten');

const onEnded = (state: SandboxState, command: Exclude<SandboxCommand, Create>, { at }: DecisionContext): SandboxDecision => {
  if (command.type === 'DeleteSandbox') return state.forget ? ignore('already deleted') : accept({ type: 'SandboxForgetting', at });
  if (command.type === 'StopSandbox') return ignore(`already ${state.status}`);
  if (!isFromClient(command)) return ignore(`already ${state.status}: the report is late`);
  const message = `${state.id} has ended (${state.status}, reason ${state.stopReason}); create a new sandbox`;
  return reject(wireError('SANDBOX_ENDED', message, { details: { status: state.status, stopReason: state.stopReason } }));
};
