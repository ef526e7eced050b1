/**
 * Bundles the program's entry points into `build/`, because Node 20 cannot run TypeScript. About 0.1 s each.
 *
 *   node infra/tools/bundle.mjs                 every entry point
 *   node infra/tools/bundle.mjs dsec demo       the named ones
 *   node infra/tools/bundle.mjs --if-stale …    only those whose sources are newer than their bundle
 *
 * Native modules stay outside (`external`): they are loaded from node_modules beside the bundle.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

export const ROOT = join(import.meta.dirname, '../..');
const NATIVE_MODULES = ['better-sqlite3', 'koffi', 'node-pty'];

/** CommonJS dependencies ask for `require` at run time; an ES module has none of its own. */
const REQUIRE_BANNER = "import { createRequire as dsecCreateRequire } from 'node:module'; const require = dsecCreateRequire(import.meta.url);";

const TRAINING = {
  'demo-training': 'infra/demo/training/demo.ts',
  'demo-preemption': 'infra/demo/training/preemption.ts',
  'demo-trainer': 'infra/demo/training/trainer-process.ts',
};

/** Name of a bundle → its source. Benchmarks are found by their file name. */
export const entryPoints = () => {
  const entries = { dsec: 'node-runtime/bin/dsec.ts', demo: 'infra/demo/demo.ts', sim: 'simulations/sim.ts', cluster: 'infra/cluster/cli.ts', ...TRAINING };
  const perf = join(ROOT, 'test/perf');
  for (const file of existsSync(perf) ? readdirSync(perf).sort() : []) {
    if (file.endsWith('.bench.ts')) entries[`bench/${file.slice(0, -'.bench.ts'.length)}`] = `test/perf/${file}`;
  }
  return entries;
};

const outputOf = (name) => join(ROOT, 'build', `${name}.mjs`);
const stampOf = (name) => join(ROOT, 'build/.bundle', `${name.replaceAll('/', '-')}.json`);

/** A bundle is fresh while it is newer than every file that went into it and than this script. */
const isFresh = (name) => {
  if (!existsSync(outputOf(name)) || !existsSync(stampOf(name))) return false;
  const builtAtMs = statSync(outputOf(name)).mtimeMs;
  const inputs = JSON.parse(readFileSync(stampOf(name), 'utf8'));
  return [...inputs, relative(ROOT, import.meta.filename), 'package-lock.json'].every((file) => {
    const path = join(ROOT, file);
    return existsSync(path) && statSync(path).mtimeMs <= builtAtMs;
  });
};

/** Written aside and renamed: another process may be starting from the old bundle right now. */
const writeAtomically = (path, contents) => {
  mkdirSync(dirname(path), { recursive: true });
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, contents);
  renameSync(aside, path);
};

export const bundle = async (name, source) => {
  const { build } = await import('esbuild');
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: [source],
    outfile: outputOf(name),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: 'linked',
    // A stack trace names lines; with their text in it the map of each process would be four times as large.
    sourcesContent: false,
    external: NATIVE_MODULES,
    banner: { js: REQUIRE_BANNER },
    metafile: true,
    write: false,
    logLevel: 'error',
  });
  for (const file of [...result.outputFiles].reverse()) writeAtomically(file.path, file.contents);
  const inputs = Object.keys(result.metafile.inputs).filter((file) => !file.startsWith('node_modules/'));
  writeAtomically(stampOf(name), JSON.stringify(inputs));
};

const main = async (argv) => {
  const onlyStale = argv.includes('--if-stale');
  const wanted = argv.filter((argument) => !argument.startsWith('--'));
  const entries = entryPoints();
  const unknown = wanted.filter((name) => !entries[name]);
  if (unknown.length > 0) throw new Error(`no entry point named ${unknown.join(', ')}; there are ${Object.keys(entries).join(', ')}`);
  for (const name of wanted.length > 0 ? wanted : Object.keys(entries)) {
    if (!(onlyStale && isFresh(name))) await bundle(name, entries[name]);
  }
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  main(process.argv.slice(2)).catch((error) => {
    process.stderr.write(`bundle: ${error.message}\n`);
    process.exitCode = 1;
  });
}
