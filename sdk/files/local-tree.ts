/**
 * Trees of this machine, packed and unpacked by its own `tar`: it keeps what a tree on this system can have (links, holes,
 * attributes, times to the nanosecond, names of any bytes), which Node's file functions do not.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { DsecError } from '#bus/errors.ts';
import type { Omission } from '#bus/op/files.ts';
import { local } from './copy-file.ts';
import { SDK_FILE_LIMITS } from './limits.ts';

const COMMON = ['--numeric-owner', '--xattrs', '--quoting-style=escape'];
const PACK = ['--create', '--file=-', '--format=pax', '--sparse', '--xattrs-include=*', ...COMMON];
const UNPACK = ['--extract', '--file=-', '--delay-directory-restore', ...COMMON];
/** As the archive says. It comes out of a sandbox: only for those who trust what ran there. */
const AS_THERE = ['--same-owner', '--same-permissions', '--xattrs-include=*'];
/** Everything is the local user's: no other owner, no set-id bit, no capability of a program. */
const AS_OURS = ['--no-same-owner', '--no-same-permissions', '--xattrs-include=user.*'];

/** The content of a local directory as a tar stream. What tar leaves out by itself is added to `omitted`. */
export async function* packLocal(directory: string, omitted: Omission[]): AsyncGenerator<Uint8Array> {
  const tar = new Tar([...PACK, '--directory', directory, '.'], `pack ${directory}`);
  tar.stdin.end();
  try {
    for await (const chunk of tar.stdout) yield chunk as Uint8Array;
    await tar.ended;
    for (const [, path] of tar.words.matchAll(/^tar: (.*): socket ignored$/gm)) omitted.push({ path: (path ?? '').replace(/^\.\//, ''), what: 'socket' });
  } finally {
    tar.kill();
  }
}

/** Unpacks into a local directory. `owners`: as the archive says, where this user may. */
export const unpackLocal = async (archive: AsyncIterable<Uint8Array>, directory: string, { owners }: { readonly owners: boolean }): Promise<void> => {
  await local(directory, mkdir(directory, { recursive: true }));
  const keep = owners && process.getuid?.() === 0 ? AS_THERE : AS_OURS;
  const tar = new Tar([...UNPACK, ...keep, '--directory', directory], `unpack into ${directory}`);
  tar.stdout.resume();
  try {
    for await (const chunk of archive) {
      if (!tar.stdin.writable) break; // it has left: its own words say why
      if (!tar.stdin.write(chunk)) await Promise.race([once(tar.stdin, 'drain'), tar.ended]);
    }
    tar.stdin.end();
    await tar.ended;
  } finally {
    tar.kill();
  }
};

/** One run of tar. */
class Tar {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Rejects with its own words when it fails. */
  readonly ended: Promise<void>;
  readonly kill: () => void;
  words = '';

  constructor(args: readonly string[], what: string) {
    const child = spawn('tar', args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, LC_ALL: 'C', TAR_OPTIONS: '' } });
    this.stdin = child.stdin;
    this.stdout = child.stdout;
    this.kill = () => child.kill('SIGKILL');
    this.stdin.on('error', () => undefined); // it stopped reading: `ended` says why
    child.stderr.on('data', (bytes: Buffer) => {
      if (this.words.length < SDK_FILE_LIMITS.programErrorBytes) this.words += bytes.toString();
    });
    this.ended = once(child, 'close').then(
      ([code]: (number | null)[]) => {
        if (code !== 0)
          throw DsecError.of('INVALID_ARGUMENT', `cannot ${what}: tar says ${JSON.stringify(this.words.trim())}`, { details: { exitCode: code } });
      },
      (cause: unknown) => {
        const next = 'install it, or give a tar stream instead of a path';
        throw DsecError.of('INVALID_ARGUMENT', `cannot ${what}: this machine has no GNU tar in PATH; ${next}`, { cause });
      },
    );
    this.ended.catch(() => undefined); // reported to whoever waits for it
  }
}
