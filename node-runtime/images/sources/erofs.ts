/** An image that is an EROFS file already, made elsewhere: unpacked once, to be sure that it is whole and fits a sandbox. */
import { join, resolve } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import { runTool } from '../tools/run-tool.ts';
import { kindOfFile } from './file-kind.ts';
import type { PreparedTree, SourceContext } from './source.ts';

export type ErofsSource = { readonly type: 'erofs'; readonly path: string };

/** The tree is only looked at; the file itself is what is stored. */
export const prepareErofs = async (source: ErofsSource, context: SourceContext): Promise<PreparedTree> => {
  const file = resolve(source.path);
  if ((await kindOfFile(file)) !== 'erofs')
    throw DsecError.of('INVALID_ARGUMENT', `file ${file} is not an EROFS image; import a directory, a tar archive or an image made by mkfs.erofs`);
  const root = join(context.workDir, 'root');
  context.onProgress({ step: 'checking', detail: `reading image ${file}` });
  await runTool({ command: ['fsck.erofs', `--extract=${root}`, file], doing: `read image ${file}`, signal: context.signal });
  return { root, description: `image ${file}`, generated: false };
};
