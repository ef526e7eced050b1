/** The exec directory as Aether fills it: output logs, exit records. Small synchronous calls: the page cache answers in microseconds. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecId } from '#bus/ids.ts';
import type { OutputStream } from '#bus/op/schema.ts';
import { parseExitRecord } from '../aether/wire.ts';
import type { Exit } from '../aether/wire.ts';

const SUFFIX: Record<OutputStream, string> = { stdout: '.out', stderr: '.err' };
const REPLAY_OVER = 'replay-over';
const EMPTY = new Uint8Array(0);
/** Unit of `st_blocks`. */
const BLOCK_BYTES = 512;

export type KeptOutput = { readonly execId: ExecId; readonly endedAtMs: number; readonly bytes: number };

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

export class ExecFiles {
  readonly #dir: string;

  constructor(execDir: string) {
    this.#dir = execDir;
  }

  /** Aether was asked to start it, and did not refuse. */
  wasStarted(execId: ExecId): boolean {
    return existsSync(join(this.#dir, `${execId}.out`));
  }

  exitOf(execId: ExecId): Exit | undefined {
    try {
      return parseExitRecord(readFileSync(join(this.#dir, `${execId}.exit`)));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** Bytes of the logs: all that is known of the output of a command that left no record. */
  storedBytes(execId: ExecId): Record<OutputStream, number> {
    const size = (stream: OutputStream): number => statSync(join(this.#dir, `${execId}${SUFFIX[stream]}`), { throwIfNoEntry: false })?.size ?? 0;
    return { stdout: size('stdout'), stderr: size('stderr') };
  }

  /** Space that the logs take, which is less than their size when their beginning was let go of. */
  #blocks(execId: ExecId): Record<OutputStream, number> {
    const taken = (stream: OutputStream): number =>
      (statSync(join(this.#dir, `${execId}${SUFFIX[stream]}`), { throwIfNoEntry: false })?.blocks ?? 0) * BLOCK_BYTES;
    return { stdout: taken('stdout'), stderr: taken('stderr') };
  }

  /** Names of all files, for one look at everything. */
  names(): Set<string> {
    try {
      return new Set(readdirSync(this.#dir));
    } catch (error) {
      if (isMissing(error)) return new Set();
      throw error;
    }
  }

  /** Bytes of a log from `offset`: as many as are there, up to `maxBytes`. Undefined when the log is no longer kept. */
  read(execId: ExecId, stream: OutputStream, offset: number, maxBytes: number): Uint8Array | undefined {
    if (maxBytes === 0) return EMPTY;
    let fd: number;
    try {
      fd = openSync(join(this.#dir, `${execId}${SUFFIX[stream]}`), 'r');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    try {
      const bytes = Buffer.allocUnsafe(maxBytes);
      return bytes.subarray(0, readSync(fd, bytes, 0, maxBytes, offset));
    } finally {
      closeSync(fd);
    }
  }

  /** Ended commands that still have output, the oldest first. */
  keptOutputs(): KeptOutput[] {
    const kept: KeptOutput[] = [];
    for (const name of this.names()) {
      if (!name.endsWith('.exit')) continue;
      const execId = name.slice(0, -'.exit'.length) as ExecId;
      const { stdout, stderr } = this.#blocks(execId);
      const endedAtMs = statSync(join(this.#dir, name), { throwIfNoEntry: false })?.mtimeMs;
      if (stdout + stderr > 0 && endedAtMs !== undefined) kept.push({ execId, endedAtMs, bytes: stdout + stderr });
    }
    return kept.sort((a, b) => a.endedAtMs - b.endedAtMs);
  }

  /** Lets the output go. The empty log stays: by its name the exec id is known. */
  expire(execId: ExecId): void {
    rmSync(join(this.#dir, `${execId}.err`), { force: true });
    truncateSync(join(this.#dir, `${execId}.out`));
  }

  /** What the record of a lost sandbox says of a command, in the form of one that ran here; an empty exit record has no figures of its own. */
  writeReplayed(execId: ExecId, output: Record<OutputStream, Uint8Array>): void {
    const path = (suffix: string): string => join(this.#dir, `${execId}${suffix}`);
    for (const stream of ['stdout', 'stderr'] as const) writeFileSync(path(SUFFIX[stream]), output[stream], { mode: 0o600 });
    writeFileSync(path('.exit'), '', { mode: 0o600 });
  }

  /** Commands run from now on, whatever the record of the lost sandbox says. */
  endReplay(): void {
    writeFileSync(join(this.#dir, REPLAY_OVER), '', { mode: 0o600 });
  }

  get isReplayOver(): boolean {
    return existsSync(join(this.#dir, REPLAY_OVER));
  }

  forget(execId: ExecId): void {
    for (const suffix of ['.exit', '.err', '.out']) rmSync(join(this.#dir, `${execId}${suffix}`), { force: true });
  }
}
