/**
 * File names are bytes; JSON holds text. Between the two, every byte that is not part of valid UTF-8 stands as one lone
 * surrogate U+DC80…U+DCFF (byte + 0xDC00), as Python's `surrogateescape` has it. Ordinary names read as they are, every name
 * survives the way there and back, and a name that a listing gave can be used in the next call, or as an argument of a command.
 */
const ESCAPE = 0xdc00;
/** With the `u` flag pairs are one character each: what is left of the range stands alone. */
const LONE = /[\ud800-\udfff]/u;
const ESCAPED = /[\udc80-\udcff]/u;
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How many bytes of a valid UTF-8 sequence start at `at`; 0 when none does. */
const sequenceLength = (bytes: Uint8Array, at: number): number => {
  const first = bytes[at] ?? 0;
  const length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (length < 2) return length;
  try {
    strict.decode(bytes.subarray(at, at + length)); // rejects over-long forms and encoded surrogates too
    return at + length <= bytes.byteLength ? length : 0;
  } catch {
    return 0;
  }
};

export const textOfBytes = (bytes: Uint8Array): string => {
  try {
    return strict.decode(bytes);
  } catch {
    // the rare name that is not UTF-8
  }
  let text = '';
  for (let at = 0; at < bytes.byteLength; ) {
    const length = sequenceLength(bytes, at);
    text += length === 0 ? String.fromCharCode(ESCAPE + (bytes[at] ?? 0)) : strict.decode(bytes.subarray(at, at + length));
    at += Math.max(1, length);
  }
  return text;
};

/** Undefined for a text that stands for no bytes: another lone surrogate, or escapes that would spell valid UTF-8. */
export const bytesOfText = (text: string): Uint8Array | undefined => {
  const bytes = ESCAPED.test(text) ? unescaped(text) : LONE.test(text) ? undefined : Buffer.from(text, 'utf8');
  return bytes && textOfBytes(bytes) === text ? bytes : undefined;
};

/** As `bytesOfText`, without the check where ordinary text needs none: for many and long texts. */
export const wireBytesOf = (text: string): Uint8Array | undefined => (LONE.test(text) ? bytesOfText(text) : Buffer.from(text, 'utf8'));

/** How many bytes a text stands for, or NaN when it stands for none. */
export const byteLengthOf = (text: string): number => (LONE.test(text) ? (bytesOfText(text)?.byteLength ?? Number.NaN) : Buffer.byteLength(text));

const unescaped = (text: string): Uint8Array | undefined => {
  const parts: Uint8Array[] = [];
  let plain = '';
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code >= 0xd800 && code <= 0xdfff) {
      if (code < 0xdc80 || code > 0xdcff) return undefined;
      parts.push(Buffer.from(plain, 'utf8'), Uint8Array.of(code - ESCAPE));
      plain = '';
    } else plain += character;
  }
  return Buffer.concat([...parts, Buffer.from(plain, 'utf8')]);
};
