/** What forks stand on: the layers of their origin and the capture that was made of it, known to the origin's record alone. */
import { DsecError } from '#bus/errors.ts';
import type { ProjectName, SandboxId, SnapshotId } from '#bus/ids.ts';
import { SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Stack } from './resolve.ts';

/** SNAPSHOT_NOT_FOUND. */
export const captureOf = async (o: { readonly eventLog: EventLog }, project: ProjectName, sandboxId: SandboxId, snapshotId: SnapshotId): Promise<Stack> => {
  const stored = await o.eventLog.last(sandboxAddress(project, sandboxId));
  const made = stored ? SandboxState.parse(stored.commit.state) : null;
  const capture = made?.snapshots.find(({ id }) => id === snapshotId);
  if (!made || !capture)
    throw DsecError.of('SNAPSHOT_NOT_FOUND', `sandbox ${sandboxId} of project ${project} has no capture ${snapshotId}; fork it again`, {
      details: { sandboxId, snapshotId },
    });
  return { layers: [...made.spec.layers, capture.layer], image: `snapshot ${snapshotId}`, forkedFrom: sandboxId };
};
