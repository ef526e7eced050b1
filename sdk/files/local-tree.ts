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
import { TarWords } from './tar-words.ts';

const COMMON = ['--numeric-owner', '--xattrs', '--quoting-style=escape'];
const PACK = ['--create', '--file=-', '--format=pax', '--sparse', '--xattrs-include=*', ...COMMON];
const UNPACK = ['--extract', '--file=-', '--delay-directory-restore', ...COMMON];
/** As the archive says. It comes out of a sandbox: only for those who trust what ran there. */
const AS_THERE = ['--same-owner', '--same-permissions', '--xattrs-include=*'];
/** Everything is the local user's: no other owner, no set-id or sticky bit, no capability of a program; modes less the umask. */
const AS_OURS = ['--no-same-owner', '--no-same-permissions', '--xattrs-include=user.*'];

/** Some files changed or vanished while they were read: the archive is whole, and the words name them. */
const SOME_DIFFER = 1;

/** What the local tar did not carry: filled when it has ended. */
export type LocalOmissions = { omitted: readonly Omission[]; omittedCount: number };

/** The content of a local directory as a tar stream. What tar leaves out by itself is told in `left`. */
export async function* packLocal(directory: string, left: LocalOmissions): AsyncGenerator<Uint8Array> {
  const tar = new Tar([...PACK, '--directory', directory, '.'], `pack ${directory}`, SOME_DIFFER);
  tar.stdin.end();
  try {
    for await (const chunk of tar.stdout) yield chunk as Uint8Array;
    await tar.ended;
    Object.assign(left, tar.omissions());
  } finally {
    tar.kill();
  }
}

/** Whether this process can give files to others: what `owners` asks for on this machine. */
export const mayKeepOwners = (): boolean => process.getuid?.() === 0;

/** Unpacks into a local directory. `owners`: as the archive says. What could not be kept. */
export const unpackLocal = async (archive: AsyncIterable<Uint8Array>, directory: string, { owners }: { readonly owners: boolean }): Promise<LocalOmissions> => {
  await local(directory, mkdir(directory, { recursive: true }));
  const tar = new Tar([...UNPACK, ...(owners ? AS_THERE : AS_OURS), '--directory', directory], `unpack into ${directory}`);
  tar.stdout.resume();
  try {
    for await (const chunk of archive) {
      if (!tar.stdin.writable) break; // it has left: its own words say why
      if (!tar.stdin.write(chunk)) await Promise.race([once(tar.stdin, 'drain'), tar.ended]);
    }
    tar.stdin.end();
    await tar.ended;
    return tar.omissions();
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
  readonly #words = new TarWords();

  /** `mostCode`: the highest exit code that is no failure. */
  constructor(args: readonly string[], what: string, mostCode = 0) {
    const child = spawn('tar', args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, LC_ALL: 'C', TAR_OPTIONS: '' } });
    this.stdin = child.stdin;
    this.stdout = child.stdout;
    this.kill = () => child.kill('SIGKILL');
    this.stdin.on('error', () => undefined); // it stopped reading: `ended` says why
    child.stderr.on('data', (bytes: Buffer) => this.#words.take(bytes));
    this.ended = once(child, 'close').then(
      ([code = null]: (number | null)[]) => {
        this.#words.end();
        if (code === null || code > mostCode)
          throw DsecError.of('INVALID_ARGUMENT', `cannot ${what}: tar says ${JSON.stringify(this.#words.complaint.trim())}`, { details: { exitCode: code } });
      },
      (cause: unknown) => {
        const next = 'install it, or give a tar stream instead of a path';
        throw DsecError.of('INVALID_ARGUMENT', `cannot ${what}: this machine has no GNU tar in PATH; ${next}`, { cause });
      },
    );
    this.ended.catch(() => undefined); // reported to whoever waits for it
  }

  omissions(): LocalOmissions {
    return { omitted: this.#words.omitted, omittedCount: this.#words.omittedCount };
  }
}
