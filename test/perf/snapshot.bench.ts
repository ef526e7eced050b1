/**
 * Snapshots: an upper of 10 files, of 10,000 files of 1 KiB, and of one large file of which 1 MiB changed since the last. How long the
 * sandbox stands still, how long the whole takes beside mkfs.erofs alone over the same upper, and what the store takes for the change.
 * `-- <MiB> <files> <runs>`: size of the large file, number of small ones, runs; the middle of the runs counts.
 */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';
import { median, runBench, timed } from './harness.ts';

const [LARGE_MIB = 1_024, FILES = 10_000, RUNS = 5] = process.argv.slice(2).map(Number);
const FILES_PER_DIRECTORY = 100;

const write = async (box: Sandbox, script: string): Promise<void> => {
  const result = await box.runShell(script, { timeoutMs: 600_000 });
  if (!result.ok) throw new Error(result.stderr);
};

/** New names and contents each time, so that nothing is found in the store. */
const writeFiles = (box: Sandbox, count: number, run: number): Promise<void> =>
  write(
    box,
    `rm -rf /w/tree; mkdir /w/tree; awk 'BEGIN { for (n = 0; n < ${count}; n++) { d = "/w/tree/d" int(n / ${FILES_PER_DIRECTORY}); if (n % ${FILES_PER_DIRECTORY} == 0) system("mkdir " d); f = d "/f" n; for (i = 0; i < 32; i++) printf "%031d\\n", ${run} * 1000000 + n + i > f; close(f) } }'`,
  );

const mkfsMs = async (host: TestPlatform, box: Sandbox): Promise<number> => {
  const image = join(host.dir, 'reference.erofs');
  const upper = join(host.dir, 'data/sandboxes', box.id, 'upper');
  const { ms } = await timed(async () => execFileSync('sh', ['-c', 'mkfs.erofs --quiet "$0" "$1" && sync "$0"', image, upper], { stdio: 'ignore' }));
  rmSync(image);
  return ms;
};

await runBench('snapshot', { frozenMsSmall: '≤50', vsMkfs10k: '≤1.3', incrementalMib: '≈1' }, async (say) => {
  const host = await startTestPlatform({ logLevel: 'error' });
  const dsec = await connect({ contextFile: host.platform.contextFile });
  const options = { image: 'small', memoryLimitMb: 256 };
  try {
    const frozen: number[] = [];
    await using small = await dsec.runContainer(options);
    for (let run = 0; run < RUNS; run += 1) {
      await writeFiles(small, 10, run);
      frozen.push((await small.snapshot()).facts.frozenMs);
    }
    say(`10 files: stood still for ${frozen.map(Math.round).join(', ')} ms`);

    const [total, reference]: [number[], number[]] = [[], []];
    for (let run = 0; run < RUNS; run += 1) {
      await using many = await dsec.runContainer(options);
      await writeFiles(many, FILES, 100 + run);
      reference.push(await mkfsMs(host, many));
      const { facts } = await many.snapshot();
      total.push(facts.totalMs);
      say(`${FILES} files: ${facts.totalMs} ms, of which ${facts.frozenMs} at rest; mkfs alone ${Math.round(reference.at(-1) ?? 0)} ms`);
    }

    await using large = await dsec.runContainer(options);
    await write(large, `dd if=/dev/urandom of=/w/large bs=1M count=${LARGE_MIB} 2>/dev/null`);
    const first = await large.snapshot();
    await write(large, `dd if=/dev/urandom of=/w/large bs=1M count=1 seek=${Math.floor(LARGE_MIB / 2)} conv=notrunc 2>/dev/null`);
    const second = await large.snapshot();
    say(
      `${LARGE_MIB} MiB: ${first.facts.totalMs} ms (${first.facts.frozenMs} at rest), the change ${second.facts.totalMs} ms (${second.facts.frozenMs} at rest)`,
    );
    return {
      frozenMsSmall: median(frozen),
      totalMs10k: median(total),
      vsMkfs10k: median(total) / median(reference),
      incrementalMib: second.facts.storedBytes / 2 ** 20,
    };
  } finally {
    await dsec.close();
    await host.close();
  }
});
