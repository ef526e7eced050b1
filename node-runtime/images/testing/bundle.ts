/** Programs for tests that need a process of their own: built first, because Node does not run TypeScript. */
import { join } from 'node:path';
import { build } from 'esbuild';
import { projectRoot } from '../../project-root.ts';

/** Bundles TypeScript source into `outfile` (CommonJS); run it with `nodeEnv`. */
export const bundleProgram = async (contents: string, outfile: string): Promise<void> => {
  await build({
    stdin: { contents, resolveDir: projectRoot(), loader: 'ts' },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['koffi'],
    logLevel: 'error',
  });
};

export const nodeEnv = (): NodeJS.ProcessEnv => ({ ...process.env, NODE_PATH: join(projectRoot(), 'node_modules') });
