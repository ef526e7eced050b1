/**
 * `npm run sim -- <scenario> [options]`: bundles the simulation and runs it. A run makes and drops many small objects, so the young
 * generation gets room; without it a tenth more of the time goes into collecting them. The old one may have most of the machine, as a
 * day needs some GiB, and grows by a third at a time: left alone, it would be twice as large before anything of it is collected.
 */
import { spawn } from 'node:child_process';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { bundle, entryPoints, ROOT } from './bundle.mjs';

const HEAP_SHARE_OF_MACHINE = 0.75;
const HEAP_GROWTH_PERCENT = 30;

await bundle('sim', entryPoints().sim);
const heapMib = Math.floor((totalmem() / 2 ** 20) * HEAP_SHARE_OF_MACHINE);
const flags = ['--enable-source-maps', '--max-semi-space-size=32', `--max-old-space-size=${heapMib}`, `--heap-growing-percent=${HEAP_GROWTH_PERCENT}`];
const child = spawn(process.execPath, [...flags, join(ROOT, 'build/sim.mjs'), ...process.argv.slice(2)], { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal ? 130 : 0);
});
