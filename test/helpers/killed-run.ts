/**
 * A run of tests that is killed in the middle: a platform with a live sandbox and a paused one, watched over as `npm test` does it.
 * Prints what it owns as one line of JSON, and then waits for its death.
 */
import { cgroupNameOf } from '#runtime/config.ts';
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from './platform.ts';

const [leaksModule = ''] = process.argv.slice(2);
const { watchForLeaks } = (await import(leaksModule)) as { watchForLeaks: () => () => Promise<string[]> };
watchForLeaks();
const host = await startTestPlatform();
const dsec = await connect({ contextFile: host.platform.contextFile });
const [paused, live] = await Promise.all([0, 1].map(() => dsec.runContainer({ image: 'small', memoryLimitMb: 64, diskLimitMb: 16 })));
await live?.start(['sleep', '1000']);
await paused?.pause();
const { config } = host.platform;
process.stdout.write(`${JSON.stringify({ directory: process.env['TMPDIR'], cgroup: cgroupNameOf(config), runDir: config.runDir })}\n`);
setInterval(() => {}, 1_000);
