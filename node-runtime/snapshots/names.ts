/**
 * How snapshots stand in the catalogue of names: `snapshots/<project>/<id>`, with the layers below and what is known about it. So
 * they are roots of garbage collection like every other name, and every node that reads the store can start sandboxes from them.
 */
import { DsecError } from '#bus/errors.ts';
import { ImageName, type LayerDigest, type ProjectName, type SnapshotId } from '#bus/ids.ts';
import type { SnapshotView } from '#bus/sandbox/snapshot.ts';
import type { ImageRecord, LayerStore } from '#actors/ports/layer-store.ts';

const PREFIX = 'snapshots/';

/** Names that only the platform gives. */
export const isReservedName = (name: string): boolean => name.startsWith(PREFIX);

export const snapshotName = (project: ProjectName, id: SnapshotId): ImageName => ImageName.parse(`${PREFIX}${project}/${id}`);

/** The layers that a name stands for, lowest first. */
export const stackOf = ({ below = [], digest }: ImageRecord): LayerDigest[] => [...below, digest];

const viewOf = (record: ImageRecord): SnapshotView | null =>
  record.snapshot === undefined
    ? null
    : {
        id: record.name.slice(record.name.lastIndexOf('/') + 1) as SnapshotId,
        sandboxId: record.snapshot.sandboxId,
        at: record.createdAt,
        layers: stackOf(record),
        facts: record.snapshot.facts,
      };

/** SNAPSHOT_NOT_FOUND. Synchronous: on the create path. */
export const findSnapshot = (store: LayerStore, project: ProjectName, id: SnapshotId): SnapshotView => {
  const record = store.names.lookup(snapshotName(project, id));
  const view = record && viewOf(record);
  if (!view)
    throw DsecError.of('SNAPSHOT_NOT_FOUND', `there is no snapshot ${id} in project ${project}; see dsec snapshot ls`, { details: { snapshotId: id } });
  return view;
};

/** The project's snapshots in the order of their ids. */
export const listSnapshots = async (store: LayerStore, project: ProjectName): Promise<SnapshotView[]> =>
  (await store.names.list()).filter(({ name }) => name.startsWith(`${PREFIX}${project}/`)).flatMap((record) => viewOf(record) ?? []);

export const removeSnapshot = (store: LayerStore, project: ProjectName, id: SnapshotId): Promise<boolean> => store.names.delete(snapshotName(project, id));
