/**
 * Makes the content of the published package: one ES module with the wire contract inside, and its declarations.
 *
 * The package lies in a folder of its own because a `package.json` beside the sources would end the reach of the
 * project's `imports` map. Dependencies stay outside the bundle; none of them is native.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const here = import.meta.dirname;
const root = join(here, '../..');
const dist = join(here, 'dist');
const { dependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints: ['sdk/mod.ts'],
  outfile: join(dist, 'sdk.mjs'),
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  external: Object.keys(dependencies),
  logLevel: 'error',
});
const typescript = join(root, 'node_modules/.bin/tsc');
execFileSync(typescript, ['-p', join(here, 'tsconfig.json')], { cwd: root, stdio: ['ignore', 2, 2] });
