/**
 * An image from a directory, as it is: links, set-id bits, capabilities, times, and overlay's own deletion marks too (a
 * character device 0:0, `trusted.overlay.*`), because the upper of a sandbox is such a directory.
 */
import { realpath, stat } from 'node:fs/promises';
import { DsecError } from '#bus/errors.ts';
import { runTool } from '../tools/run-tool.ts';
import { assertPrefix, makeTree } from './prefix.ts';
import type { PreparedTree, SourceContext } from './source.ts';

export type DirectorySource = { readonly type: 'directory'; readonly path: string; readonly prefix?: string };

export const prepareDirectory = async (source: DirectorySource, context: SourceContext): Promise<PreparedTree> => {
  const path = await existingDirectory(source.path);
  const description = `directory ${path}`;
  const prefix = assertPrefix(source.prefix ?? '/');
  if (prefix === '/') return { root: path, description, generated: false };
  const { root, inside } = await makeTree(context.workDir, prefix);
  context.onProgress({ step: 'unpacking', detail: `copying ${path} to ${prefix}` });
  await runTool({
    command: ['cp', '--archive', '--reflink=auto', '--no-target-directory', '--', path, inside],
    doing: `copy ${description}`,
    signal: context.signal,
  });
  return { root, description: `${description} at ${prefix}`, generated: true };
};

const existingDirectory = async (path: string): Promise<string> => {
  const found = await stat(path).catch((cause: unknown) => {
    throw DsecError.of('INVALID_ARGUMENT', `directory ${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  });
  if (!found.isDirectory()) throw DsecError.of('INVALID_ARGUMENT', `${path} is not a directory; give a tar file with --from-tar`);
  return realpath(path);
};
