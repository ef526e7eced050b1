/**
 * `npm test`: everything a change must pass. Static checks, C unit tests under sanitizers, every vitest file, then the leak check.
 * All of them run even when one fails. The last line is `N passed, N failed`; each static check counts as one.
 *
 * What computes runs beside the tests that want to be alone: those mostly wait, and what computes gives way to them (`nice`).
 *
 *   node infra/tools/check.mjs            all
 *   node infra/tools/check.mjs --static   lint, types and boundaries only
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ROOT } from './bundle.mjs';
import { watchForLeaks } from './leaks.mjs';

const SOURCES = ['bus-schemas', 'actors', 'storage-adapters', 'node-runtime', 'sdk', 'simulations', 'infra', 'test'];
const KINDS = /\.(unit|prop|int|contract|kernel|e2e|chaos)\.spec\.ts$/;
/** Begins the command line of what computes beside tests that wait. */
const GIVING_WAY = ['nice', '-n', '19'];
const tool = (name) => join(ROOT, 'node_modules/.bin', name);

const STATIC_CHECKS = [
  { name: 'lint and format (biome)', command: [tool('biome'), 'check', '--error-on-warnings'] },
  { name: 'types (tsc)', command: [tool('tsc'), '-p', '.'] },
  { name: 'documents: links and decisions', command: [process.execPath, 'infra/tools/docs.mjs'] },
  { name: 'boundaries (dependency-cruiser)', command: [tool('depcruise'), '--config', '.dependency-cruiser.mjs', ...SOURCES] },
];

/** Runs to the end. Output passes through; with `capture` it is returned instead. Never rejects. */
const run = ([program, ...args], { capture = false } = {}) =>
  new Promise((resolve) => {
    const stream = capture ? 'pipe' : 'inherit';
    const child = spawn(program, args, { cwd: ROOT, stdio: ['ignore', stream, stream] });
    let output = '';
    for (const said of [child.stdout, child.stderr])
      said?.setEncoding('utf8').on('data', (chunk) => {
        output += chunk;
      });
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (code) => resolve({ ok: code === 0, output }));
  });

const heading = (text) => process.stdout.write(`\n── ${text}\n`);

const testFiles = () =>
  SOURCES.flatMap((folder) =>
    existsSync(join(ROOT, folder)) ? readdirSync(join(ROOT, folder), { recursive: true }).map((file) => join(folder, file)) : [],
  ).filter((file) => file.endsWith('.spec.ts'));

/** A test file whose name says no kind belongs to no project of vitest.config.ts and would never run. */
const unnamedTests = () => testFiles().filter((file) => !KINDS.test(file));

const staticChecks = async () => {
  const total = { passed: 0, failed: 0 };
  heading('every test file names its kind');
  const unnamed = unnamedTests();
  total[unnamed.length === 0 ? 'passed' : 'failed'] += 1;
  for (const file of unnamed) process.stdout.write(`FAILED: ${file} would never run; name it .unit, .prop, .int, .contract, .kernel, .e2e or .chaos\n`);
  for (const { name, command } of STATIC_CHECKS) {
    heading(name);
    const { ok } = await run(command);
    total[ok ? 'passed' : 'failed'] += 1;
    if (!ok) process.stdout.write(`FAILED: ${name}\n`);
  }
  return total;
};

/** Each case prints `ok <file>: <case>`; a failing one ends its program, and the build script with it. */
const nativeTests = async () => {
  const { ok, output } = await run([...GIVING_WAY, 'sh', 'node-runtime/native/build.sh', 'test'], { capture: true });
  const passed = output.split('\n').filter((line) => line.startsWith('ok ')).length;
  heading('C unit tests (address and undefined-behaviour sanitizers)');
  process.stdout.write(ok ? `${passed} cases\n` : `${output}\nFAILED after ${passed} cases\n`);
  return { passed, failed: ok && passed > 0 ? 0 : 1 };
};

/**
 * Counts come from vitest's JSON report. A skipped test is a failure: tests here never skip in silence. `isQuiet`: beside another run,
 * gives way to it, and says at its end what it has to say.
 */
const vitestTests = async (projects, { isQuiet = false } = {}) => {
  const title = `vitest: ${projects.join(', ')}`;
  const report = join(ROOT, `build/test-report-${projects.join('-')}.json`);
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  rmSync(report, { force: true });
  if (!isQuiet) heading(title);
  const command = [tool('vitest'), 'run', ...projects.flatMap((name) => ['--project', name]), '--reporter=default'];
  const { ok, output } = await run([...(isQuiet ? GIVING_WAY : []), ...command, '--reporter=json', `--outputFile.json=${report}`], { capture: isQuiet });
  if (isQuiet) heading(title);
  process.stdout.write(output);
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
    // A file that does not even load has no tests of its own to count.
    const brokenFiles = testResults.filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0).length;
    const failed = numFailedTests + numPendingTests + numTodoTests + brokenFiles;
    return { passed: numPassedTests, failed: failed === 0 && !ok ? 1 : failed, files: testResults.map(({ name }) => relative(ROOT, name)) };
  } catch (error) {
    process.stdout.write(`vitest left no report: ${error.message}\n`);
    return { passed: 0, failed: 1 };
  }
};

/** Those that want to be alone, with what computes beside them; then all others. */
const allTests = async () => {
  const computing = async () => [await nativeTests(), await vitestTests(['fast'], { isQuiet: true })];
  const [alone, computed] = await Promise.all([vitestTests(['alone']), computing()]);
  const parts = [alone, ...computed, await vitestTests(['integration', 'platform'])];
  const ran = new Set(parts.flatMap(({ files = [] }) => files));
  const forgotten = testFiles().filter((file) => !ran.has(file));
  for (const file of forgotten) process.stdout.write(`FAILED: ${file} did not run\n`);
  return [...parts, { passed: 0, failed: forgotten.length }];
};

const leakCheck = async (leaks) => {
  heading('leak check');
  const left = await leaks();
  process.stdout.write(left.length === 0 ? 'nothing left behind\n' : `FAILED, left behind:\n${left.map((line) => `  ${line}\n`).join('')}`);
  return { passed: left.length === 0 ? 1 : 0, failed: left.length === 0 ? 0 : 1 };
};

const main = async () => {
  const isStatic = process.argv.includes('--static');
  const leaks = isStatic ? undefined : watchForLeaks();
  const parts = [await staticChecks()];
  if (leaks) parts.push(...(await allTests()), await leakCheck(leaks));
  const sum = (key) => parts.reduce((total, part) => total + part[key], 0);
  process.stdout.write(`\n${sum('passed')} passed, ${sum('failed')} failed\n`);
  process.exitCode = sum('failed') === 0 ? 0 : 1;
};

await main();
