/** What is told about a file. */
import type { EntryRecord } from '#bus/op/file-records.ts';
import type { FileEntry, Omission, StreamEnd } from '#bus/op/files.ts';

export type FileInfo = Omit<FileEntry, 'modifiedSeconds' | 'modifiedNanoseconds'> & {
  /** To the millisecond. */
  readonly modifiedAt: Date;
  /** Since 1970, exact. */
  readonly modifiedNs: bigint;
};
/** `name` leads back to the file, whatever bytes it has; `pathBytes(name)` gives them. */
export type ListedFile = FileInfo & { readonly name: string };

/** How a tree was carried. `omitted` names the first thousand things that were not carried as they are, `omittedCount` counts all. */
export type TreeReport = { readonly entries: number; readonly bytes: number; readonly omittedCount: number; readonly omitted: readonly Omission[] };

export const infoOf = ({ modifiedSeconds, modifiedNanoseconds, ...entry }: FileEntry): FileInfo => ({
  ...entry,
  modifiedAt: new Date(modifiedSeconds * 1_000 + Math.floor(modifiedNanoseconds / 1_000_000)),
  modifiedNs: BigInt(modifiedSeconds) * 1_000_000_000n + BigInt(modifiedNanoseconds),
});

export const listedOf = ({ name, ...entry }: EntryRecord): ListedFile => ({ name, ...infoOf(entry) });
/** `local`: what this side did not carry. */
export const reportOf = ({ entries, bytes, omittedCount, omitted }: StreamEnd, local: Pick<TreeReport, 'omittedCount' | 'omitted'>): TreeReport => ({
  entries,
  bytes,
  omittedCount: omittedCount + local.omittedCount,
  omitted: [...local.omitted, ...omitted],
});
