/**
 * `npm run bench -- <name> [arguments]`: bundles `test/perf/<name>.bench.ts` and runs it; without a name it lists what there is.
 * The benchmark prints its figures as JSON on the last line of stdout.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { bundle, entryPoints, ROOT } from './bundle.mjs';
import { watchForLeaks } from './leaks.mjs';

const PREFIX = 'bench/';
/** What is resident is what a run needs only where the heap may not grow as it likes. */
const NODE_FLAGS = { 'sim-full': ['--max-semi-space-size=16', '--max-old-space-size=830'] };
const sources = Object.fromEntries(
  Object.entries(entryPoints())
    .filter(([name]) => name.startsWith(PREFIX))
    .map(([name, source]) => [name.slice(PREFIX.length), source]),
);

const [name, ...rest] = process.argv.slice(2);
if (!name || !sources[name]) {
  if (name) process.stderr.write(`bench: there is no benchmark named ${name}\n`);
  process.stdout.write(
    `benchmarks (npm run bench -- <name>):\n${Object.keys(sources)
      .map((known) => `  ${known}\n`)
      .join('')}`,
  );
  process.exitCode = name ? 2 : 0;
} else {
  await bundle(`${PREFIX}${name}`, sources[name]);
  const leaks = watchForLeaks();
  const child = spawn(process.execPath, ['--enable-source-maps', ...(NODE_FLAGS[name] ?? []), join(ROOT, 'build', `${PREFIX}${name}.mjs`), ...rest], {
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', async (code) => {
    if (code === null) process.exit(1); // it could not clean up: whoever waits for this process's end does
    process.exitCode = code;
    for (const line of await leaks()) process.stderr.write(`left behind: ${line}\n`);
  });
}
