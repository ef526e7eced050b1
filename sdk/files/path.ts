/** Paths as callers give them: text, or the bytes that a name really has. */
import { DsecError } from '#bus/errors.ts';
import { bytesOfText, textOfBytes } from '#bus/op/byte-path.ts';

/**
 * Absolute path inside the sandbox. Names that are not UTF-8 are given as bytes, or as the text that `list` gave: there each
 * odd byte stands as one lone surrogate, which leads back to the very same name.
 */
export type SandboxPath = string | Uint8Array;

export const wirePath = (path: SandboxPath, field = 'path'): string => {
  const text = typeof path === 'string' ? path : textOfBytes(path);
  if (text.startsWith('/')) return text;
  throw DsecError.of('INVALID_ARGUMENT', `${field}: must be absolute, such as /w/${JSON.stringify(text.slice(0, 80)).slice(1, -1)}`, {
    details: { fields: [field] },
  });
};

/** The bytes of a name or path that a listing gave. */
export const pathBytes = (path: SandboxPath): Uint8Array => {
  const bytes = typeof path === 'string' ? bytesOfText(path) : path;
  if (!bytes) throw DsecError.of('INVALID_ARGUMENT', `path: ${JSON.stringify(path)} stands for no bytes`);
  return bytes;
};
