/**
 * What an archive holds, read before anything is unpacked: a bad entry is refused by name and nothing is left on disk.
 *
 * Refused: names outside the root (absolute, `..`), hard links to such names, owners no sandbox has, names that an OCI layer
 * would mean as deletions (unless the caller says what they are), entries that stripping would lose.
 */
import { DsecError } from '#bus/errors.ts';
import { IMAGE_LIMITS } from '../limits.ts';
import { runTool } from '../tools/run-tool.ts';
import { ownerOutOfRange } from '../tools/tree.ts';

/**
 * Names beginning with `.wh.`: `refuse`, because in an OCI layer they delete and in any other archive they are files;
 * `oci`: deletions, converted to overlay's marks; `keep`: plain files.
 */
export const WHITEOUTS = ['refuse', 'oci', 'keep'] as const;
export type Whiteouts = (typeof WHITEOUTS)[number];

export type ListingRules = { readonly ownersKept: boolean; readonly stripComponents: number; readonly whiteouts: Whiteouts };
export type TarFacts = { readonly entries: number; readonly bytes: number };

export type TarEntry = {
  readonly type: string;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  readonly name: string;
  readonly target: string | null;
};

/** One line of `tar --list` as `LISTING` asks for it; spaces and unprintable bytes in names are escaped, so blanks separate. */
const LINE = /^(.)\S+ +(\d+)\/(\d+) +(\d+)(?:,\d+)? +\S+ \S+ +((?:\\.|[^\\\s])+)(?: (?:->|link to) ((?:\\.|[^\\\s])+))?$/;
const LISTING = ['--list', '--verbose', '--numeric-owner', '--full-time', '--quoting-style=escape', '--quote-chars= ', '--absolute-names'];

export const parseTarLine = (line: string): TarEntry | null => {
  const match = LINE.exec(line);
  if (!match) return null;
  const [, type = '', uid, gid, size, name = '', target = null] = match;
  return { type, uid: Number(uid), gid: Number(gid), sizeBytes: type === 'b' || type === 'c' ? 0 : Number(size), name, target };
};

/** Throws INVALID_ARGUMENT naming the first entry that will not do. */
export const checkTarEntry = (what: string, entry: TarEntry, rules: ListingRules): void => {
  const bad = (why: string): DsecError => DsecError.of('INVALID_ARGUMENT', `${what}: entry ${entry.name} ${why}`, { details: { entry: entry.name } });
  const parts = entry.name.split('/').filter((part) => part !== '');
  if (!'-dlhcbpC'.includes(entry.type)) throw bad(`has type ${entry.type}, which no layer can hold`);
  if (entry.name.startsWith('/')) throw bad('is absolute; make the archive with relative names');
  if (parts.includes('..')) throw bad('leads outside the image; make the archive without ".."');
  if (entry.type === 'h' && (entry.target === null || entry.target.startsWith('/') || entry.target.split('/').includes('..')))
    throw bad(`is a hard link to ${entry.target}, outside the image`);
  if (rules.ownersKept && Math.max(entry.uid, entry.gid) >= IMAGE_LIMITS.idsPerSandbox) throw ownerOutOfRange(what, entry.name, entry.uid, entry.gid);
  if (rules.whiteouts === 'refuse' && parts.some((part) => part.startsWith('.wh.')))
    throw bad('begins with ".wh.": say --whiteouts oci when the archive is an OCI layer and this means a deletion, or --whiteouts keep when it is a file');
  if (entry.type !== 'd' && parts.length <= rules.stripComponents)
    throw bad(`would be lost by stripping ${rules.stripComponents} leading components; strip fewer`);
};

export const inspectTar = async (what: string, file: string, rules: ListingRules, signal: AbortSignal | undefined): Promise<TarFacts> => {
  const stopEarly = new AbortController();
  let [entries, bytes] = [0, 0];
  let refused: unknown = null;
  const onOutputLine = (line: string): void => {
    if (refused !== null) return;
    try {
      const entry = parseTarLine(line);
      if (!entry) throw DsecError.of('INVALID_ARGUMENT', `${what}: cannot understand the entry ${JSON.stringify(line.slice(0, 200))}`);
      checkTarEntry(what, entry, rules);
      entries += 1;
      bytes += entry.sizeBytes;
      if (entries > IMAGE_LIMITS.filesPerImage)
        throw DsecError.of('INVALID_ARGUMENT', `${what} holds more than ${IMAGE_LIMITS.filesPerImage} entries; split it into several layers`);
    } catch (error) {
      refused = error;
      stopEarly.abort();
    }
  };
  try {
    await runTool({
      command: ['tar', ...LISTING, '--force-local', `--file=${file}`],
      doing: `read ${what}`,
      env: { TZ: 'UTC' },
      signal: signal ? AbortSignal.any([signal, stopEarly.signal]) : stopEarly.signal,
      onOutputLine,
    });
  } catch (error) {
    throw refused ?? error;
  }
  if (refused !== null) throw refused;
  if (entries === 0) throw DsecError.of('INVALID_ARGUMENT', `${what} is empty; an image needs at least one file`);
  return { entries, bytes };
};
