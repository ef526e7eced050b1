/** Where in the sandbox a source's files go: `/workspace/project` becomes directories inside the tree being built. */
import { mkdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import { IMAGE_LIMITS } from '../limits.ts';

/** INVALID_ARGUMENT unless absolute, plain and short. `/` is the root of the image. */
export const assertPrefix = (prefix: string): string => {
  const normal = posix.normalize(prefix).replace(/(?<=.)\/$/, '');
  const valid =
    prefix.startsWith('/') && !prefix.split('/').includes('..') && !/[\0\n\r]/.test(prefix) && Buffer.byteLength(prefix) <= IMAGE_LIMITS.prefixBytes;
  if (!valid)
    throw DsecError.of('INVALID_ARGUMENT', `prefix ${JSON.stringify(prefix.slice(0, 200))} must be an absolute path without "..", like /workspace/project`);
  return normal;
};

/** Makes the tree's root and the prefix inside it; returns both. */
export const makeTree = async (workDir: string, prefix: string): Promise<{ root: string; inside: string }> => {
  const root = join(workDir, 'root');
  const inside = join(root, assertPrefix(prefix));
  await mkdir(inside, { recursive: true, mode: 0o755 });
  return { root, inside };
};
