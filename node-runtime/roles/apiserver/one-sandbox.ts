/** One sandbox, as verbs need it: its newest state from the log, and a command to the Edge that owns it. */
import { randomUUID } from 'node:crypto';
import type { Decision, SandboxView } from '#bus/api/schema.ts';
import type { CommandEnvelope } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, messageIdOf, type ProjectName, parseSandboxId, type SandboxId } from '#bus/ids.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import { SandboxState } from '#bus/sandbox/state.ts';
import { edgeCommandSubject, sandboxAddress } from '#bus/subjects.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { Caller } from './apiserver.ts';
import { commandDeadline } from './decisions.ts';
import { answerOfLost, viewWithLoss } from './losses.ts';
import type { VerbsOptions } from './verbs.ts';

export const newest = async (o: VerbsOptions, project: ProjectName, id: SandboxId): Promise<SandboxView | null> => {
  if (!o.shards.includes(parseSandboxId(id).shard)) return null;
  const stored = await o.eventLog.last(sandboxAddress(project, id));
  return stored ? viewWithLoss(viewOf(stored), o.losses) : null;
};

const viewOf = ({ commit, sequence }: StoredCommit): SandboxView => ({
  version: commit.version,
  streamSequence: sequence,
  state: SandboxState.parse(commit.state),
  lost: false,
});

export const lifecycle = async (o: VerbsOptions, id: SandboxId, data: SandboxBusCommand, key: ClientKey | undefined, caller: Caller): Promise<Decision> => {
  const { project, principal, traceparent } = caller;
  const { shard, edge } = parseSandboxId(id);
  if (!o.shards.includes(shard)) throw DsecError.of('SANDBOX_NOT_FOUND', `there is no sandbox ${id} in project ${project}; see dsec ls`);
  const answer = await answerOfLost(id, data, o.losses, () => newest(o, project, id));
  if (answer) return answer;
  const commandId = messageIdOf(project, id, data.type, key ?? randomUUID());
  const envelope: CommandEnvelope = {
    v: 1,
    id: commandId,
    at: o.clock.now(),
    project,
    principal,
    correlationId: commandId,
    deadlineAt: commandDeadline(o.clock),
    data,
    ...(traceparent ? { traceparent } : {}),
  };
  return o.decisions.decide(edgeCommandSubject(edge, id), envelope);
};
