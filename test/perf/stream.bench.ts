/** `stream`: stdout of a command through the SDK, held back for its reader, against a pipe between two programs on the host. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { median, runBench, timed } from './harness.ts';

const BYTES = 1024 * 1024 * 1024;
const BLOCK_BYTES = 64 * 1024;
const PRODUCER = ['dd', 'if=/dev/zero', `bs=${BLOCK_BYTES}`, `count=${BYTES / BLOCK_BYTES}`];
const ROUNDS = 3;
const BYTES_PER_MB = 1e6;
const KIB_PER_MIB = 1_024;

const perSecond = (ms: number): number => BYTES / BYTES_PER_MB / (ms / 1_000);

const pipeMs = async (): Promise<number> => (await timed(async () => spawnSync('sh', ['-c', `${PRODUCER.join(' ')} 2> /dev/null | cat > /dev/null`]))).ms;

const streamMs = async (box: Sandbox): Promise<number> => {
  const { ms } = await timed(async () => {
    const command = await box.start(PRODUCER, { onFull: 'block' });
    let bytes = 0;
    for await (const chunk of command.stdout) bytes += chunk.byteLength;
    if (bytes !== BYTES) throw new Error(`${bytes} of ${BYTES} bytes came through`);
  });
  return ms;
};

const peakRssMib = (pid: number): number => Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / KIB_PER_MIB;

await runBench('stream', { mbPerSecond: '≥ 200, or', vsPipe: '≥ 0.25', edgePeakRssMib: 'flat' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    await using box = await dsec.runContainer({ image: 'small' });
    const edge = test.platform.pids().edge;
    if (edge === undefined) throw new Error('no Edge runs');
    const before = peakRssMib(edge);
    const pipes: number[] = [];
    const streams: number[] = [];
    for (let i = 0; i < ROUNDS; i += 1) {
      pipes.push(await pipeMs());
      streams.push(await streamMs(box));
      say(
        `pipe ${perSecond(pipes[i] ?? 0).toFixed(0)} MB/s, stream ${perSecond(streams[i] ?? 0).toFixed(0)} MB/s, Edge ${peakRssMib(edge).toFixed(0)} MiB (${before.toFixed(0)} at the start)`,
      );
    }
    const edgePeakRssMib = peakRssMib(edge);
    await box.stop();
    await dsec.close();
    const mbPerSecond = perSecond(median(streams));
    return { mbPerSecond, vsPipe: mbPerSecond / perSecond(median(pipes)), edgePeakRssMib, edgeGrowthMib: edgePeakRssMib - before };
  } finally {
    await test.close();
  }
});
