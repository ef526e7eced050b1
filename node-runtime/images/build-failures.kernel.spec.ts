/** Builds that are killed, cancelled, doubled or out of space: what is left of them. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import type { ImageName } from '#bus/ids.ts';
import { buildLayer } from './build.ts';
import { type BuildBench, createBuildBench } from './testing/build-bench.ts';
import { bundleProgram, nodeEnv } from './testing/bundle.ts';

const run = promisify(execFile);
let bench: BuildBench;
beforeAll(async () => {
  bench = await createBuildBench();
});
afterAll(() => bench.remove());

describe('a build that does not end well', () => {
  const BUILDER = `
    import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
    import { buildLayer } from '#runtime/images/mod.ts';
    const [dir, name, path] = process.argv.slice(2);
    buildLayer(new PosixLayerStore({ dir }), { name, kind: 'base', source: { type: 'directory', path, prefix: '/in' } }, { onProgress: ({ step }) => process.stdout.write(step + '\\n') })
      .then((record) => process.stdout.write(record.digest + '\\n'), (error) => { process.stdout.write('failed ' + error.code + '\\n'); });
  `;
  let builder: string;
  let large: string;
  beforeAll(async () => {
    builder = join(bench.scratch, 'builder.cjs');
    await bundleProgram(BUILDER, builder);
    large = join(bench.scratch, 'large');
    await mkdir(large);
    for (let i = 0; i < 24; i += 1) await writeFile(join(large, `f${i}`), Buffer.alloc(4 * 1024 * 1024, i));
  });

  const startBuilder = (dir: string, name: string): ChildProcess =>
    spawn(process.execPath, [builder, dir, name, large], { env: nodeEnv(), stdio: ['ignore', 'pipe', 'inherit'] });
  const sawStep = async (child: ChildProcess, step: string): Promise<void> => {
    for await (const [chunk] of iterate(child)) if (String(chunk).split('\n').includes(step)) return;
    throw new Error(`the builder ended before ${step}`);
  };
  async function* iterate(child: ChildProcess): AsyncGenerator<[Buffer]> {
    while (child.exitCode === null) yield (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  }
  /** Processes whose command line speaks of this test's directory. */
  const processesOf = async (dir: string): Promise<string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    return commands.filter((command) => command.includes(dir)).map((command) => command.replaceAll('\0', ' '));
  };

  test('killed at any step, it takes its tools along, and the next build removes what it left', async () => {
    const dir = join(bench.scratch, 'killed');
    for (const step of ['unpacking', 'checking', 'packing', 'storing']) {
      const child = startBuilder(dir, 'victim');
      await sawStep(child, step);
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    await expect.poll(() => processesOf(dir), { timeout: 20_000 }).toEqual([]);
    const second = new PosixLayerStore({ dir });
    const record = await buildLayer(second, { name: 'victim', kind: 'base', source: { type: 'directory', path: large, prefix: '/in' } });
    expect(await second.verify(record.digest)).toBe('intact');
    expect(await readdir(second.scratchDir)).toEqual([]);
    expect(await readdir(join(dir, 'tmp'))).toEqual([]);
  });

  test('cancelled at any step, it leaves the old image and no file', async () => {
    const small = join(bench.scratch, 'small');
    await mkdir(small);
    await writeFile(join(small, 'f'), 'old');
    const old = await bench.build({ type: 'directory', path: small }, { name: 'replaced' });
    for (const step of ['waiting-never', 'unpacking', 'checking', 'packing', 'storing']) {
      const abort = new AbortController();
      if (step === 'waiting-never') abort.abort();
      const built = bench.build(
        { type: 'directory', path: large, prefix: '/in' },
        { name: 'replaced' },
        { signal: abort.signal, onProgress: (p) => p.step === step && abort.abort() },
      );
      await expect(built).rejects.toMatchObject({ code: 'CANCELLED' });
      expect(await bench.leftovers()).toEqual([]);
      expect(bench.store.names.lookup('replaced' as ImageName)).toEqual(old);
    }
  });

  test('one name is built by one process at a time', async () => {
    const dir = join(bench.scratch, 'twice');
    const children = [startBuilder(dir, 'same'), startBuilder(dir, 'same')];
    const outputs = await Promise.all(children.map((child) => textOf(child.stdout as NodeJS.ReadableStream)));
    const steps = outputs.map((output) => output.trim().split('\n'));
    expect(steps.filter((s) => s.includes('waiting'))).toHaveLength(1);
    expect(new Set(steps.map((s) => s.at(-1))).size).toBe(1);
    expect(steps[0]?.at(-1)).toMatch(/^sha256:/);
    expect(await readdir(join(dir, 'build'))).toEqual([]);
  });

  test('on a full disk it is NO_SPACE and leaves no file', async () => {
    const dir = join(bench.scratch, 'full');
    await mkdir(dir);
    const script = 'mount -t tmpfs -o size=48m none "$0"; "$@"; find "$0" -type f -size +0';
    const { stdout } = await run('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', script, dir, process.execPath, builder, dir, 'big', large], {
      env: nodeEnv(),
    });
    expect(stdout.trim().split('\n').at(-1)).toBe('failed NO_SPACE');
  });
});
