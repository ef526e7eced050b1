/** Finds the end of one script in a stream that comes in pieces, and keeps what stands before it, up to a limit. Pure. */

export type Mark = { readonly begin: string; readonly end: string };
const NOTHING = new Uint8Array(0);
/** Longest text between the beginning and the end of a mark: an exit code. */
const VALUE_BYTES_MAX = 16;

export class MarkScanner {
  readonly #begin: Buffer;
  readonly #end: Buffer;
  readonly #limitBytes: number;
  readonly #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #totalBytes = 0;
  /** The last bytes seen, which may be the beginning of the mark. */
  #held: Buffer = Buffer.alloc(0);
  #value: string | undefined;

  constructor(mark: Mark, limitBytes: number) {
    this.#begin = Buffer.from(mark.begin, 'latin1');
    this.#end = Buffer.from(mark.end, 'latin1');
    this.#limitBytes = limitBytes;
  }

  /** What stands between beginning and end of the mark, once it is found. */
  get value(): string | undefined {
    return this.#value;
  }
  get bytes(): Uint8Array {
    return this.#keptBytes === 0 ? NOTHING : Buffer.concat(this.#kept);
  }
  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** Returns what follows the mark, which is none of this script's. */
  take(chunk: Uint8Array): Uint8Array {
    const all = Buffer.concat([this.#held, chunk]);
    const at = all.indexOf(this.#begin);
    if (at < 0) {
      const safe = Math.max(0, all.byteLength - this.#begin.byteLength + 1);
      this.#keep(all.subarray(0, safe));
      this.#held = all.subarray(safe);
      return NOTHING;
    }
    const from = at + this.#begin.byteLength;
    const to = all.indexOf(this.#end, from);
    if (to < 0 && all.byteLength - from <= VALUE_BYTES_MAX) {
      this.#keep(all.subarray(0, at));
      this.#held = all.subarray(at);
      return NOTHING;
    }
    this.#keep(all.subarray(0, at));
    this.#held = Buffer.alloc(0);
    this.#value = all.toString('latin1', from, Math.max(from, to));
    return all.subarray(to + this.#end.byteLength);
  }

  /** The stream ends here: what was held back is output after all. */
  finish(): void {
    this.#keep(this.#held);
    this.#held = Buffer.alloc(0);
  }

  #keep(bytes: Uint8Array): void {
    this.#totalBytes += bytes.byteLength;
    const part = bytes.subarray(0, Math.max(0, this.#limitBytes - this.#keptBytes));
    if (part.byteLength === 0) return;
    this.#kept.push(Uint8Array.from(part)); // a copy: a view would keep the whole message alive
    this.#keptBytes += part.byteLength;
  }
}
