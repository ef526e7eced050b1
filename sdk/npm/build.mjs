/**
 * Makes the content of the published package: one ES module with the wire contract inside, and its declarations.
 *
 * The package lies in a folder of its own because a `package.json` beside the sources would end the reach of the
 * project's `imports` map. Dependencies stay outside the bundle; none of them is native.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const here = import.meta.dirname;
const root = join(here, '../..');
const dist = join(here, 'dist');
const { dependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));

/** The tools of the project. npm prints nothing of `prepack` on stdout, where it names the tarball. */
const run = (tool, ...words) => execFileSync(join(root, 'node_modules/.bin', tool), words, { cwd: root, stdio: ['ignore', 2, 2] });

rmSync(dist, { recursive: true, force: true });
const external = Object.keys(dependencies).map((name) => `--external:${name}`);
run(
  'esbuild',
  'sdk/mod.ts',
  '--bundle',
  `--outfile=${join(dist, 'sdk.mjs')}`,
  '--platform=node',
  '--target=node20',
  '--format=esm',
  '--log-level=error',
  ...external,
);
run('tsc', '-p', join(here, 'tsconfig.json'));
copyFileSync(join(root, 'LICENSE'), join(here, 'LICENSE'));
