/** The keys that leave a terminal's program running: `ctrl-p,ctrl-q` and the like. Pure. */
import { DsecError } from '#bus/errors.ts';

export const DEFAULT_DETACH_KEYS = 'ctrl-p,ctrl-q';
const CONTROL_MASK = 0x1f;

/** Bytes of the sequence; empty for `''`, which turns leaving off. */
export const parseDetachKeys = (text: string): Uint8Array => {
  if (text === '') return new Uint8Array(0);
  return Uint8Array.from(
    text.split(',').map((key) => {
      const control = /^ctrl-([a-z@[\\\]^_])$/.exec(key)?.[1];
      if (control) return control.toUpperCase().charCodeAt(0) & CONTROL_MASK;
      if (/^[\x21-\x7e]$/.test(key)) return key.charCodeAt(0);
      throw DsecError.of('INVALID_ARGUMENT', `--detach-keys: ${JSON.stringify(key.slice(0, 20))} is no key; write ctrl-p,ctrl-q or single characters`);
    }),
  );
};

/** Passes typed bytes on and holds back what may be the beginning of the sequence. */
export class DetachFilter {
  readonly #keys: Uint8Array;
  #matched = 0;

  constructor(keys: Uint8Array) {
    this.#keys = keys;
  }

  /** What goes to the program, and whether the sequence was typed: what follows it is nobody's. */
  take(typed: Uint8Array): { readonly bytes: Uint8Array; readonly detached: boolean } {
    if (this.#keys.byteLength === 0) return { bytes: typed, detached: false };
    const bytes: number[] = [];
    for (const byte of typed) {
      if (byte !== this.#keys[this.#matched]) {
        bytes.push(...this.#keys.subarray(0, this.#matched));
        this.#matched = 0;
      }
      if (byte === this.#keys[this.#matched]) this.#matched += 1;
      else bytes.push(byte);
      if (this.#matched === this.#keys.byteLength) return { bytes: Uint8Array.from(bytes), detached: true };
    }
    return { bytes: Uint8Array.from(bytes), detached: false };
  }
}
