/**
 * Writes down each sample with what it decodes to, in `bus-schemas/fixtures/<kind>.v1.json`. Names that are there already are
 * left as they are: a message of a released version must decode to its recorded result for ever. Before a first release
 * a name may be deleted from its file and recorded again.
 *
 *   node bus-schemas/testing/record-fixtures.mjs
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');

const { outputFiles } = await build({
  absWorkingDir: ROOT,
  entryPoints: ['bus-schemas/testing/samples.ts'],
  bundle: true,
  platform: 'node',
  format: 'esm',
  write: false,
  logLevel: 'error',
});
const { READERS, SAMPLES } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

const folder = join(ROOT, 'bus-schemas/fixtures');
mkdirSync(folder, { recursive: true });
for (const [kind, samples] of Object.entries(SAMPLES)) {
  const file = join(folder, `${kind}.v1.json`);
  const recorded = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const added = Object.keys(samples).filter((name) => !Object.hasOwn(recorded, name));
  for (const name of added) recorded[name] = { input: samples[name], decoded: READERS[kind](samples[name], name) };
  if (added.length === 0) continue;
  writeFileSync(file, `${JSON.stringify(recorded, null, 1)}\n`);
  process.stdout.write(`${kind}: recorded ${added.join(', ')}\n`);
}
