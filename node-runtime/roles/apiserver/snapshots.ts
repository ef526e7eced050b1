/** What the apiserver knows of snapshots: the catalogue's records of the caller's project, a page at a time. */
import type { ApiParsed, ApiResponse } from '#bus/api/schema.ts';
import type { ProjectName, SnapshotId } from '#bus/ids.ts';
import type { SnapshotView } from '#bus/sandbox/snapshot.ts';
import { APISERVER_LIMITS } from './limits.ts';

export type ProjectSnapshots = {
  /** SNAPSHOT_NOT_FOUND. */
  find(project: ProjectName, id: SnapshotId): SnapshotView | Promise<SnapshotView>;
  /** By id. */
  list(project: ProjectName): Promise<readonly SnapshotView[]>;
  remove(project: ProjectName, id: SnapshotId): Promise<boolean>;
};

export const pageOfSnapshots = (all: readonly SnapshotView[], { sandboxId, snapshotId, after, limit }: ApiParsed<'snapshots'>): ApiResponse<'snapshots'> => {
  const isWanted = (snapshot: SnapshotView): boolean =>
    (after === undefined || snapshot.id > after) &&
    (sandboxId === undefined || snapshot.sandboxId === sandboxId) &&
    (snapshotId === undefined || snapshot.id === snapshotId);
  const wanted = all.filter(isWanted);
  const snapshots: SnapshotView[] = [];
  let bytes = 0;
  for (const snapshot of wanted.slice(0, limit)) {
    bytes += Buffer.byteLength(JSON.stringify(snapshot));
    if (bytes > APISERVER_LIMITS.pageBytes && snapshots.length > 0) break;
    snapshots.push(snapshot);
  }
  return { snapshots, next: snapshots.length < wanted.length ? (snapshots.at(-1)?.id ?? null) : null };
};
