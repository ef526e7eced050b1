/** JSON of what anybody may have sent. */

/** `undefined` for what is no JSON, which every schema refuses by name. */
export const jsonOrUndefined = (text: string | Uint8Array): unknown => {
  try {
    return JSON.parse(typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
};
