/**
 * Trees of this machine, packed and unpacked by its own `tar`: it keeps what a tree on this system can have (links, holes,
 * attributes, times to the nanosecond, names of any bytes), which Node's file functions do not.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { DsecError } from '#bus/errors.ts';
import { local } from './copy-file.ts';
import { SDK_FILE_LIMITS } from './limits.ts';

const PACK = ['--create', '--file=-', '--format=pax', '--sparse', '--numeric-owner', '--xattrs', '--xattrs-include=*', '--one-file-system'];
const UNPACK = ['--extract', '--file=-', '--numeric-owner', '--xattrs', '--xattrs-include=*', '--delay-directory-restore'];

/** The content of a local directory as a tar stream. */
export async function* packLocal(directory: string): AsyncGenerator<Uint8Array> {
  const tar = start([...PACK, '--directory', directory, '.'], 'ignore', 'pipe');
  let done = false;
  try {
    for await (const chunk of tar.stdout as Readable) yield chunk as Uint8Array;
    await ended(tar, `pack ${directory}`);
    done = true;
  } finally {
    if (!done) tar.kill('SIGKILL');
  }
}

/** Unpacks into a local directory. `owners`: as the archive says, where this user may. */
export const unpackLocal = async (archive: AsyncIterable<Uint8Array>, directory: string, { owners }: { readonly owners: boolean }): Promise<void> => {
  await local(directory, mkdir(directory, { recursive: true }));
  const isRoot = process.getuid?.() === 0;
  const keep = owners && isRoot ? ['--same-owner', '--same-permissions'] : ['--no-same-owner', '--no-same-permissions'];
  const tar = start([...UNPACK, ...keep, '--directory', directory], 'pipe', 'ignore');
  const input = tar.stdin as Writable;
  input.on('error', () => undefined); // it has left: its own words say why
  const end = ended(tar, `unpack into ${directory}`);
  end.catch(() => undefined); // reported below
  try {
    for await (const chunk of archive) {
      if (input.destroyed || input.writableEnded) break;
      if (!input.write(chunk)) await Promise.race([once(input, 'drain'), end]);
    }
    input.end();
    await end;
  } catch (thrown) {
    tar.kill('SIGKILL');
    throw thrown;
  }
};

type Tar = ChildProcessByStdio<Writable | null, Readable | null, Readable>;

const start = (args: readonly string[], stdin: 'ignore' | 'pipe', stdout: 'ignore' | 'pipe'): Tar =>
  spawn('tar', args, { stdio: [stdin, stdout, 'pipe'], env: { ...process.env, LC_ALL: 'C', TAR_OPTIONS: '' } }) as Tar;

const ended = async (tar: Tar, what: string): Promise<void> => {
  let said = '';
  tar.stderr.on('data', (bytes: Buffer) => {
    if (said.length < SDK_FILE_LIMITS.programErrorBytes) said += bytes.toString();
  });
  const [code] = (await once(tar, 'close').catch((cause: unknown) => {
    throw DsecError.of('INVALID_ARGUMENT', `cannot ${what}: this machine has no GNU tar in PATH; install it, or give a tar stream instead of a path`, { cause });
  })) as [number | null];
  if (code !== 0) throw DsecError.of('INVALID_ARGUMENT', `cannot ${what}: tar says ${JSON.stringify(said.trim())}`, { details: { exitCode: code } });
};
