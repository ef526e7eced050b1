/**
 * Records the stories that have no recorded history yet: one commit per line in `actors/<kind>/histories/<story>.v<schema>.jsonl`.
 * What is recorded is never written again: it must fold to its recorded state for ever.
 *
 *   node actors/kernel/testing/record-histories.mjs
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../../..');

const { outputFiles } = await build({
  absWorkingDir: ROOT,
  entryPoints: ['actors/kernel/testing/shelves.ts'],
  bundle: true,
  platform: 'node',
  format: 'esm',
  write: false,
  logLevel: 'error',
});
const { SHELVES } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

for (const { kind, stories } of SHELVES)
  for (const { name, run } of stories) {
    const commits = run(false).history.map((stored) => stored.commit);
    const folder = join(ROOT, 'actors', kind, 'histories');
    const file = join(folder, `${name}.v${commits[0].schema}.jsonl`);
    if (existsSync(file)) continue;
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, commits.map((commit) => `${JSON.stringify(commit)}\n`).join(''));
    process.stdout.write(`recorded ${file}\n`);
  }
