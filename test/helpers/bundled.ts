/** Makes a TypeScript program of the tests into a file that Node runs, for tests that need a process of their own to kill. */
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** `source` is relative to the project. Native modules stay outside and are found from below the project's root. */
export const bundled = async (source: string): Promise<string> => {
  const outfile = join(ROOT, 'build', 'test', `${basename(source, '.ts')}.mjs`);
  await build({
    absWorkingDir: ROOT,
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    external: ['better-sqlite3', 'koffi', 'node-pty'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  });
  return outfile;
};
