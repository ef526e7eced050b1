/**
 * What GNU tar says on standard error about things that it does not carry, as omissions. Its exit code says nothing of most of them.
 * Decides what a warning means; pure. The words are those of LC_ALL=C with `--quoting-style=escape`.
 */
import { textOfBytes } from '#bus/op/byte-path.ts';
import type { Omission } from '#bus/op/files.ts';
import { SDK_FILE_LIMITS } from './limits.ts';

const WARNINGS: readonly { readonly pattern: RegExp; readonly what: Omission['what']; readonly escaped: boolean }[] = [
  { pattern: /^(.*): socket ignored$/s, what: 'socket', escaped: true },
  { pattern: /^(.*): (?:file changed as we read it|File shrank by \d+ bytes; padding with zeros)$/s, what: 'changed', escaped: true },
  { pattern: /^\w+: Cannot set '[^']*' extended attribute for file '(.*)': [^:]*$/s, what: 'xattr', escaped: false },
];
/** Every message begins so; a name in it may have line breaks. */
const BEGIN = 'tar: ';

const CODES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };
const unescaped = (name: string): Buffer =>
  Buffer.from(
    name.replace(/\\([0-7]{3}|.)/gs, (_, code: string) =>
      /^[0-7]{3}$/.test(code) ? String.fromCharCode(Number.parseInt(code, 8)) : CODES[code] === undefined ? code : String.fromCharCode(CODES[code]),
    ),
    'latin1',
  );

const pathOf = (name: string, escaped: boolean): string => {
  const bytes = escaped ? unescaped(name) : Buffer.from(name, 'latin1');
  return textOfBytes(bytes).replace(/^\.\//, '');
};

/** Takes standard error as it comes; `end` once after the last of it. */
export class TarWords {
  readonly omitted: Omission[] = [];
  omittedCount = 0;
  /** The last of what was said and is no omission: why it failed, when it did. */
  complaint = '';
  readonly #seen = new Set<string>();
  #message = '';

  take(bytes: Buffer): void {
    this.#message += bytes.toString('latin1');
    for (let next = this.#next(); next >= 0; next = this.#next()) {
      this.#understand(this.#message.slice(0, next));
      this.#message = this.#message.slice(next + 1);
    }
    if (this.#message.length > SDK_FILE_LIMITS.programErrorBytes) this.#message = this.#message.slice(0, SDK_FILE_LIMITS.programErrorBytes);
  }

  end(): void {
    if (this.#message !== '') this.#understand(this.#message.replace(/\n$/, ''));
    this.#message = '';
  }

  /** Where the message ends: the next one begins behind it. */
  #next(): number {
    return this.#message.indexOf(`\n${BEGIN}`);
  }

  #understand(message: string): void {
    const words = message.startsWith(BEGIN) ? message.slice(BEGIN.length) : message;
    for (const { pattern, what, escaped } of WARNINGS) {
      const name = pattern.exec(words)?.[1];
      if (name === undefined) continue;
      this.#omit({ path: pathOf(name, escaped), what });
      return;
    }
    this.complaint = `${this.complaint}${message}\n`.slice(-SDK_FILE_LIMITS.programErrorBytes);
  }

  /** Several attributes of one file are one omission, as inside. */
  #omit(omission: Omission): void {
    const key = `${omission.what} ${omission.path}`;
    if (omission.what === 'xattr' && this.#seen.has(key)) return;
    if (this.#seen.size < SDK_FILE_LIMITS.namedOmissions) this.#seen.add(key);
    this.omittedCount += 1;
    if (this.omitted.length < SDK_FILE_LIMITS.namedOmissions) this.omitted.push(omission);
  }
}
