/**
 * One run of dsec-pack, the native program that makes an image of what a sandbox has written. It is spoken to in three steps, so
 * that the sandbox stands still for the second only: prepare, read, write. It says the digests of what it wrote itself.
 *
 * Knows its words (packer/report.h) and turns its refusals into typed errors. Does not freeze, store or name anything.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import { SNAPSHOT_LIMITS } from '#bus/limits.ts';
import type { Removed } from '#bus/sandbox/snapshot.ts';
import { isStoreAway, storeAway } from '#adapters/layers/posix/mod.ts';
import { projectRoot } from '../project-root.ts';
import { PACKING_LIMITS } from './limits.ts';

export type PackOrder = {
  /** What is packed, for messages: `sandbox sb-…`. */
  readonly what: string;
  /** The upper directory, or the image of the sandbox's own disk in which it lies. */
  readonly upper: { readonly directory: string } | { readonly disk: string };
  /** The tree as the sandbox sees it. */
  readonly merged?: string;
  /** First id of the sandbox on the host. */
  readonly firstId: number;
  /** Files to be made. */
  readonly image: string;
  readonly data: string;
  /** 32 hexadecimal digits: tells images of equal contents over different layers apart. */
  readonly uuid: string;
  /** Data files of earlier images. */
  readonly earlier: readonly { readonly digest: LayerDigest; readonly path: string }[];
  readonly rules: readonly string[];
  /** Large files are not read but shared with the upper, where the file system of both can: no chunk of them is found again later. */
  readonly share?: boolean;
};

export type Taken = {
  readonly files: number;
  readonly contentBytes: number;
  readonly storedBytes: number;
  readonly sharedBytes: number;
  /** Of the shared ones, those in the data file on blocks of the upper. */
  readonly clonedBytes: number;
  readonly removedCount: number;
  readonly removed: readonly Removed[];
};

/** What the packer has hashed while it wrote. */
export type Written = { readonly data: LayerDigest | null; readonly image: LayerDigest };

/** What it says that it could not do, of the files that it makes on the store's file system. */
const WRITING: ReadonlySet<string> = new Set(['make data file', 'write data file', 'read the data file', 'make image', 'write image']);

/** Of what it writes into the upper: packer/links.h. */
const COMPLETING = 'complete hard links';

/** As the launcher gives them out: ID_RANGE_FIRST and ID_RANGE_SIZE of its limits.h. */
export const firstIdOf = (slot: number): number => 100_000 + slot * 65_536;

export class Packer {
  readonly #what: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #removed: Removed[] = [];
  readonly #ended: Promise<unknown>;
  #stderr = '';

  constructor(order: PackOrder) {
    this.#what = order.what;
    const source = 'directory' in order.upper ? ['--upper', order.upper.directory] : ['--disk', order.upper.disk];
    const earlier = order.earlier
      .slice(0, PACKING_LIMITS.earlierFiles)
      .flatMap(({ digest, path }) => ['--earlier', `${digest.slice('sha256:'.length)}:${path}`]);
    const rules = order.rules.flatMap((rule) => ['--rule', rule]);
    const args = [
      ...source,
      '--first-id',
      String(order.firstId),
      '--image',
      order.image,
      '--data',
      order.data,
      '--uuid',
      order.uuid,
      ...earlier,
      ...rules,
      ...(order.share ? ['--share'] : []),
      ...(order.merged ? ['--merged', order.merged] : []),
    ];
    this.#child = spawn(join(projectRoot(), 'build/native/dsec-pack'), args, { stdio: ['pipe', 'pipe', 'pipe'], cwd: '/' });
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', resolve);
      this.#child.once('close', resolve);
    });
    this.#child.stdin?.on('error', () => {}); // it is gone; its last line or its end says why
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#stderr = (this.#stderr + bytes.toString()).slice(-1_000);
    });
    this.#lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  /** Resolves when it can begin to read at once. */
  async prepare(): Promise<void> {
    await this.#expect('ready');
  }

  /** Reads everything. The sandbox must rest meanwhile, and need not any more when this resolves. UNPORTABLE_FILE, NO_SPACE. */
  async take(): Promise<Taken> {
    this.#child.stdin?.write('\n');
    const words = await this.#expect('taken');
    const counts = Object.fromEntries(words.map((word) => word.split('='))) as Record<string, string>;
    const [files, contentBytes, storedBytes, sharedBytes, clonedBytes, removedCount] = ['files', 'bytes', 'stored', 'shared', 'cloned', 'removed'].map((key) =>
      Number(counts[key]),
    );
    return { files, contentBytes, storedBytes, sharedBytes, clonedBytes, removedCount, removed: this.#removed } as Taken;
  }

  /** Resolves when both files are written. `data`: null when nothing new was stored and the data file is of no use. */
  async written(): Promise<Written> {
    const [data, image] = await this.#expect('done');
    await this.#ended;
    return { data: data === '-' ? null : (`sha256:${data}` as LayerDigest), image: `sha256:${image}` as LayerDigest };
  }

  /** Ends it wherever it is; resolves when it is gone. */
  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #expect(wanted: string): Promise<string[]> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PACKING_LIMITS.silenceMs);
    try {
      for (;;) {
        const { value, done } = await this.#lines.next();
        if (done) throw await this.#died();
        const [kind, ...words] = (value as string).split(' ');
        if (kind === wanted) return words;
        if (kind === 'removed') this.#noteRemoved(words);
        else throw this.#refusal(kind ?? '', words.map(decode));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #noteRemoved([rule = '', path = '']: readonly string[]): void {
    if (this.#removed.length < SNAPSHOT_LIMITS.removedTold) this.#removed.push({ rule: decode(rule), path: decode(path) });
  }

  #refusal(kind: string, [first = '', second = '']: readonly string[]): DsecError {
    if (kind === 'refused')
      return DsecError.of(
        'UNPORTABLE_FILE',
        `snapshot of ${this.#what}: ${first || '/'} cannot be kept as it is: ${second}; remove it, or leave it out by a scrub rule`,
        {
          details: { path: first || '/', reason: second },
        },
      );
    if ((first === 'ENOSPC' || first === 'EDQUOT') && second === COMPLETING)
      return DsecError.of(
        'NO_SPACE',
        `snapshot of ${this.#what}: its disk has no room for the names of a file with several; remove something inside, then take it again`,
        {
          details: { errno: first },
        },
      );
    if (first === 'ENOSPC' || first === 'EDQUOT')
      return DsecError.of('NO_SPACE', `snapshot of ${this.#what}: the node's disk is full; remove images or free space, then take it again`, {
        details: { errno: first },
      });
    if (WRITING.has(second) && isStoreAway(first)) return storeAway(`${second} of the snapshot of ${this.#what}`, first);
    return DsecError.of('INTERNAL', `snapshot of ${this.#what}: could not ${second || kind}: ${first}`, { details: { errno: first, step: second } });
  }

  async #died(): Promise<DsecError> {
    await this.#ended;
    const how = this.#child.signalCode ?? this.#child.exitCode;
    return DsecError.of('INTERNAL', `snapshot of ${this.#what}: the packer ended without a word (${how})${this.#stderr ? `: ${this.#stderr.trim()}` : ''}`);
  }
}

/** Percent-encoded bytes; what is no UTF-8 comes out with replacement characters, for people. */
const decode = (word: string): string => {
  const bytes = word.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
};
