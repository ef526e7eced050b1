/** `dsec cp`, `dsec cat` and `dsec ls-files`: files of a sandbox from the shell. */
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Command as Cli } from 'commander';
import { DsecError } from '#bus/errors.ts';
import type { DsecClient } from '../../client.ts';
import type { TreeReport } from '../../files/info.ts';
import type { SandboxFiles } from '../../files/sandbox-files.ts';
import type { FileCallOptions } from '../../files/target.ts';
import { type CopyEnd, childOf, copyEnds, namesContent } from '../copy-ends.ts';
import { abortedByInterrupt } from '../interrupt.ts';
import { complain, printJson, printTable, time, write } from '../output.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type CopyFlags = CommonFlags & { readonly archive?: boolean; readonly user?: string };
type Asked = CopyFlags & { readonly signal: AbortSignal };

export const registerCopy = (program: Cli): void => {
  withCommonOptions(
    program
      .command('cp')
      .description('copy files and directories into a sandbox and out of it')
      .argument('<source>', 'SANDBOX:PATH, a local path, or - for a tar stream on stdin')
      .argument('<destination>', 'SANDBOX:PATH, a local path, or - for a tar stream on stdout')
      .option('-a, --archive', 'keep owners, and set-id bits with them; without it everything is the user’s')
      .option('-u, --user <user>', 'who reads and writes inside: name, uid or uid:gid')
      .addHelpText(
        'after',
        `
A file goes to the destination's name, or into it when that is a directory. A directory goes into an existing one under its own
name, and becomes the destination otherwise; with /. behind it, what it holds goes into the destination. Links are copied as
links, holes stay holes. What is not carried (FIFOs, sockets, devices, what a user may not read or set) is named on stderr.

Examples:
  dsec cp model.py sb-0-…:/w/                 one file into a directory
  dsec cp sb-0-…:/w/results ./                a directory, under its name
  dsec cp src/. sb-0-…:/w/src                 what a directory holds
  tar -c . | dsec cp - sb-0-…:/w
  dsec cp sb-0-…:/etc - | tar -t
`,
      ),
  ).action((source: string, destination: string, flags: CopyFlags) =>
    act(flags, (dsec) => abortedByInterrupt((signal) => copy(dsec, source, destination, flags, signal))),
  );
};

type Copied = { readonly entries: number; readonly bytes: number; readonly omittedCount: number; readonly omitted: TreeReport['omitted'] };

const copy = async (dsec: DsecClient, source: string, destination: string, flags: CopyFlags, signal: AbortSignal): Promise<number> => {
  const ends = copyEnds(source, destination);
  const files = dsec.sandbox(ends.sandbox).files;
  const asked = { ...flags, signal };
  const copied = await (ends.into ? copyIn(files, ends.from, ends.to, asked) : copyOut(files, ends.from, ends.to, asked)).catch((thrown: unknown) => {
    throw signal.aborted
      ? DsecError.of('CANCELLED', 'interrupted; of a tree what had come stays, a single file is whole or as it was', { cause: thrown })
      : thrown;
  });
  for (const { path, what } of copied.omitted) await complain(`not carried as it is: ${JSON.stringify(path)} (${what})`);
  const unnamed = copied.omittedCount - copied.omitted.length;
  if (unnamed > 0) await complain(`and ${unnamed} more`);
  if (flags.json && ends.to.kind !== 'stream') await printJson(copied);
  return 0;
};

const copyIn = async (files: SandboxFiles, from: CopyEnd, to: CopyEnd, { archive, user, signal }: Asked): Promise<Copied> => {
  const options = { user, signal, owners: archive === true };
  if (from.kind === 'stream') {
    signal.addEventListener('abort', () => process.stdin.destroy()); // or its reader would wait for more
    return files.uploadTree(process.stdin, to.path, { ...options, owners: true });
  }
  const isDirectory = (await localStat(from.path))?.isDirectory();
  if (isDirectory === undefined) throw DsecError.of('INVALID_ARGUMENT', `there is no local file ${from.path}`);
  const target = await insideOf(files, to.path, user);
  const into = target === 'directory' && !namesContent(from.path) ? childOf(to.path, basename(from.path)) : to.path;
  if (isDirectory) return files.uploadTree(from.path, into, options);
  const { size } = await files.upload(from.path, target === 'directory' || to.path.endsWith('/') ? childOf(to.path, basename(from.path)) : to.path, {
    user,
    signal,
  });
  return { entries: 1, bytes: size, omittedCount: 0, omitted: [] };
};

const copyOut = async (files: SandboxFiles, from: CopyEnd, to: CopyEnd, { archive, user, signal }: Asked): Promise<Copied> => {
  if (to.kind === 'stream') return streamOut(files, from.path, { user, signal });
  const { type } = await files.stat(from.path, { user });
  const target = (await localStat(to.path))?.isDirectory() ? join(to.path, basename(from.path)) : to.path;
  if (type === 'directory') return files.downloadTree(from.path, namesContent(from.path) ? to.path : target, { user, signal, owners: archive === true });
  const { size } = await files.download(from.path, to.path.endsWith('/') ? join(to.path, basename(from.path)) : target, { user, signal });
  return { entries: 1, bytes: size, omittedCount: 0, omitted: [] };
};

const streamOut = async (files: SandboxFiles, path: string, options: FileCallOptions): Promise<Copied> => {
  if (process.stdout.isTTY) throw DsecError.of('INVALID_ARGUMENT', 'a tar stream is nothing for a terminal; pipe it on, or name a local path');
  const tar = await files.tar(path, options);
  for await (const chunk of tar) await write(process.stdout, chunk);
  const { entries = 0, bytes = 0, omittedCount = 0, omitted = [] } = tar.end ?? {};
  return { entries, bytes, omittedCount, omitted };
};

const localStat = (path: string) => stat(path).catch(() => undefined);

/** Kind of what is at a path in the sandbox; undefined when nothing is. */
const insideOf = async (files: SandboxFiles, path: string, user: string | undefined): Promise<string | undefined> =>
  (await files.exists(path, { user })) ? (await files.stat(path, { user })).type : undefined;

type LookFlags = CommonFlags & { readonly user?: string };

export const registerCat = (program: Cli): void => {
  withCommonOptions(
    program
      .command('cat')
      .description('print a file of a sandbox, byte by byte')
      .argument('<sandbox>', 'id of the sandbox')
      .argument('<path>', 'absolute path in it')
      .option('-u, --user <user>', 'who reads: name, uid or uid:gid')
      .addHelpText('after', '\nExamples:\n  dsec cat sb-0-… /etc/os-release\n'),
  ).action((id: string, path: string, flags: LookFlags) =>
    act(flags, async (dsec) => {
      for await (const chunk of await dsec.sandbox(id).files.stream(path, { user: flags.user })) await write(process.stdout, chunk);
      return 0;
    }),
  );
};

export const registerListFiles = (program: Cli): void => {
  withCommonOptions(
    program
      .command('ls-files')
      .description('list a directory of a sandbox')
      .argument('<sandbox>', 'id of the sandbox')
      .argument('[path]', 'absolute path in it', '/')
      .option('-u, --user <user>', 'who looks: name, uid or uid:gid')
      .addHelpText('after', "\nExamples:\n  dsec ls-files sb-0-… /w\n  dsec ls-files --json sb-0-… /w | jq -r 'select(.size > 1e6).name'\n"),
  ).action((id: string, path: string, flags: LookFlags) =>
    act(flags, async (dsec) => {
      const entries = await dsec.sandbox(id).files.list(path, { user: flags.user });
      if (flags.json) for (const { modifiedNs, ...entry } of entries) await printJson({ ...entry, modifiedNs: String(modifiedNs) });
      else {
        const rows = entries.map((e) => [e.name, e.type, e.mode.toString(8), `${e.uid}:${e.gid}`, e.size, time(e.modifiedAt.getTime()), e.target]);
        await printTable(['NAME', 'TYPE', 'MODE', 'OWNER', 'SIZE', 'MODIFIED', 'TARGET'], rows);
      }
      return 0;
    }),
  );
};
