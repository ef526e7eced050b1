/**
 * `npm run sim -- <scenario> [options]`: bundles the simulation and runs it. A run makes and drops many small objects, so the young
 * generation gets room; without it a tenth more of the time goes into collecting them.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { bundle, entryPoints, ROOT } from './bundle.mjs';

await bundle('sim', entryPoints().sim);
const child = spawn(process.execPath, ['--enable-source-maps', '--max-semi-space-size=32', join(ROOT, 'build/sim.mjs'), ...process.argv.slice(2)], {
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal ? 130 : 0);
});
