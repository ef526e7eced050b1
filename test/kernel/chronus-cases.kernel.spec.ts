/** What users of other sandboxes reported about running commands, as tests of Chronus: over Aether alone, and in a sandbox that the launcher made. */
import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientKey, execIdFor } from '#bus/ids.ts';
import { startAether } from './aether-stand.ts';
import { ChronusUnderTest, SANDBOX_ID } from './chronus-under-test.ts';
import { LauncherStand } from './launcher-stand.ts';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const SEQ_SHA256 = '5af7b95208fdcff454bab3f5eddf567a688a3796c703d4fef91072e38645c062';
const MEBIBYTE = 1024 * 1024;

type World = { readonly execDir: string; readonly socketPath: string; stop(): Promise<void> };

const APPLETS = ['awk', 'kill', 'mktemp', 'pkill', 'seq', 'setsid', 'sha256sum', 'tr', 'yes'];

const startLaunched = async (): Promise<World> => {
  const launcher = new LauncherStand();
  await launcher.connect();
  const tools = launcher.image('tools', (root) => {
    mkdirSync(join(root, 'bin'));
    for (const applet of APPLETS) symlinkSync('busybox', join(root, 'bin', applet));
    // Debian's busybox has none
    writeFileSync(join(root, 'bin/nohup'), '#!/bin/sh\ntrap "" HUP\nexec "$@"\n', { mode: 0o755 });
  });
  await launcher.client.mountImage(tools.digest, tools.path);
  const spec = launcher.spec(1, { layers: [launcher.base.digest, tools.digest] });
  await launcher.client.launch(spec);
  return {
    execDir: spec.execDir,
    socketPath: spec.socket,
    stop: async () => {
      expect(await launcher.close()).toEqual([]);
    },
  };
};

describe.each<[string, () => Promise<World>]>([
  ['Aether alone', startAether],
  ['a launched sandbox', startLaunched],
])('%s', (_, start) => {
  let world: World;
  let box: ChronusUnderTest;

  beforeAll(async () => {
    world = await start();
    box = new ChronusUnderTest(world);
    expect(await box.chronus.attach()).toBe(true);
  });
  afterAll(async () => {
    box.chronus.close();
    await world.stop();
  });

  test('a start that comes after its caller has left runs nothing', async () => {
    const key = 'left-before-it-came' as ClientKey;
    const execId = execIdFor(SANDBOX_ID, key);
    await expect(box.call('signal', { execId, signal: 'KILL', tree: true, abandon: true })).rejects.toMatchObject({ code: 'EXEC_NOT_FOUND' });
    await expect(box.exec(['sleep', '98713'], { key })).rejects.toMatchObject({ code: 'CANCELLED', outcome: 'not_applied' });
    expect(await count('sleep 98713')).toBe(0);
  });

  /** How many processes of the sandbox have exactly this command line. */
  const count = async (commandLine: string): Promise<number> => {
    const { stdout } = await box.exec(`for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done 2>/dev/null | grep -cx '${commandLine} '`);
    return Number(stdout.toString());
  };

  describe('a command that leaves a child in the background', () => {
    test.each([
      ['&', 'sleep 61.1 & echo started', 'sleep 61.1'],
      ['nohup', 'nohup sleep 61.2 & echo started', 'sleep 61.2'],
      ['setsid', '(setsid sleep 61.3 &); echo started', 'sleep 61.3'],
    ])('%s: the call returns, the child lives, again and again', async (_, shell, child) => {
      for (let round = 0; round < 3; round += 1) {
        const { exec, stdout } = await box.exec(shell);
        expect(exec).toMatchObject({ state: 'ended', exitCode: 0, reason: 'exited', fault: null, pipesOpen: true });
        expect(stdout.toString()).toBe('started\n');
      }
      expect(await count(child)).toBe(3);
      await box.exec(['pkill', '-fx', child]);
    });

    test('what it prints later belongs to its command alone', async () => {
      const late = await box.exec('(sleep 0.3; echo late) & echo started');
      expect(late.stdout.toString()).toBe('started\n');
      expect((await box.exec('echo other')).stdout.toString()).toBe('other\n');
      expect((await box.readAll(late.exec.execId, 'stdout')).toString()).toBe('started\nlate\n');
      expect(await box.wait(late.exec.execId)).toMatchObject({ pipesOpen: false, exitCode: 0 });
    });
  });

  test('a time-out ends the whole tree, keeps the output and harms nothing else', async () => {
    const before = await box.exec('sleep 62.5 & echo');
    const { exec, stdout } = await box.exec('trap "" TERM; echo partial; (exec sleep 98761) & setsid sleep 98762 & sleep 98763', { timeoutMs: 2_000 as never });
    expect(exec).toMatchObject({ state: 'ended', reason: 'timeout', fault: 'agent', exitCode: 137, signal: 'KILL' });
    expect((exec.endedAt ?? 0) - exec.startedAt).toBeGreaterThanOrEqual(2_000);
    expect(stdout.toString()).toBe('partial\n');
    expect(await count('sleep 9876[1-3]')).toBe(0);
    expect(await count('sleep 62.5')).toBe(1);
    expect((await box.call('signal', { execId: before.exec.execId, signal: 'KILL', tree: true })).data.delivered).toBe(true);
  });

  describe('large output', () => {
    test('one stream', async () => {
      const { exec } = await box.exec(['seq', '1', '200000']);
      expect(exec).toMatchObject({ exitCode: 0, stdout: { totalBytes: 1_288_895, storedBytes: 1_288_895, truncated: false } });
      expect(sha256(await box.readAll(exec.execId, 'stdout'))).toBe(SEQ_SHA256);
    });

    test('both at once', async () => {
      const { exec } = await box.exec('seq 1 200000 & seq 1 200000 >&2; wait');
      const both = await Promise.all([box.readAll(exec.execId, 'stdout'), box.readAll(exec.execId, 'stderr')]);
      expect(both.map(sha256)).toEqual([SEQ_SHA256, SEQ_SHA256]);
    });

    test('many times', async () => {
      for (let round = 0; round < 40; round += 1) {
        const { exec } = await box.exec(['seq', '1', '20000']);
        expect((await box.readAll(exec.execId, 'stdout')).byteLength).toBe(108_894);
      }
    });

    test('beyond the cap: counted, cut, and not killed', async () => {
      const { exec, stdout } = await box.exec('seq 1 3000; exit 3', { outputLimitBytes: 1024 });
      expect(exec).toMatchObject({ exitCode: 3, reason: 'exited', stdout: { totalBytes: 13_893, storedBytes: 1024, truncated: true } });
      expect(stdout.toString()).toBe(
        Array.from({ length: 3000 }, (_, i) => `${i + 1}\n`)
          .join('')
          .slice(0, 1024),
      );
    });

    test('streamed while it is made, one line of 64 MiB', async () => {
      const started = await box.exec("head -c 67108864 /dev/zero | tr '\\0' x; printf END", { waitMs: 0, outputLimitBytes: 128 * MEBIBYTE });
      const hash = createHash('sha256');
      let bytes = 0;
      await box.readAll(started.exec.execId, 'stdout', (chunk) => {
        hash.update(chunk);
        bytes += chunk.byteLength;
      });
      expect(bytes).toBe(64 * MEBIBYTE + 3);
      expect(hash.digest('hex')).toBe(sha256(Buffer.concat([Buffer.alloc(64 * MEBIBYTE, 'x'), Buffer.from('END')])));
    });
  });

  test('bytes stay bytes', async () => {
    expect((await box.exec("printf '\\377\\376\\000\\200A'")).stdout.toString('hex')).toBe('fffe008041');
    expect((await box.exec("printf '\\342'; sleep 0.05; printf '\\202\\254'")).stdout.toString()).toBe('€');
    const { exec } = await box.exec(`awk 'BEGIN{printf "a"; for(i=0;i<50000;i++) printf "€"}'`);
    const text = await box.readAll(exec.execId, 'stdout');
    expect([text.byteLength, sha256(text)]).toEqual([150_001, 'e04d2e06232a97815cb807c75a761eab804713b554b83cf89db845e76dbbdb8a']);
    expect((await box.exec("printf '\\342\\202'")).stdout.toString('hex')).toBe('e282');
  });

  describe('how a command ended', () => {
    test.each([
      ['exit 7', 7, null, 'exited'],
      ['exit 255', 255, null, 'exited'],
      ['kill -TERM $$', 143, 'TERM', 'signaled'],
      ['kill -KILL $$', 137, 'KILL', 'signaled'],
      ['kill -SEGV $$', 139, 'SEGV', 'signaled'],
      ['kill -ABRT $$', 134, 'ABRT', 'signaled'],
      ['exit 137', 137, null, 'exited'],
      ['no_such_cmd_xyz', 127, null, 'exited'],
      ['f=$(mktemp); $f; code=$?; rm $f; exit $code', 126, null, 'exited'],
    ])('%s', async (shell, exitCode, signal, reason) => {
      expect((await box.exec(shell)).exec).toMatchObject({ exitCode, signal, reason, fault: 'agent', retry: 'never' });
    });

    test('a missing program leaves nothing behind', async () => {
      const files = (await box.call('list', {})).data.execs.length;
      await expect(box.exec(['/no/such/binary'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND', outcome: 'not_applied' });
      expect((await box.call('list', {})).data.execs).toHaveLength(files);
    });

    test('signals are at their defaults', async () => {
      const head = await box.exec('yes | head -n 1');
      expect([head.stdout.toString(), head.stderr.toString(), head.exec.exitCode]).toEqual(['y\n', '', 0]);
      const masks = await box.exec(['grep', '-E', 'Sig(Ign|Blk)', '/proc/self/status']);
      expect(masks.stdout.toString()).toBe('SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
    });
  });

  describe('standard input', () => {
    test('none: end of file at once', async () => {
      expect((await box.exec(['wc', '-c'])).stdout.toString()).toBe('0\n');
    });

    test('empty but present', async () => {
      for (let round = 0; round < 50; round += 1)
        expect((await box.exec(['cat'], { stdin: 'bytes' })).exec).toMatchObject({ exitCode: 0, stdout: { totalBytes: 0 } });
    });

    test('inline', async () => {
      expect((await box.exec(['cat'], { stdin: 'bytes' }, Buffer.from('abc'))).stdout.toString()).toBe('abc');
      const zeros = await box.exec(['sha256sum'], { stdin: 'bytes' }, Buffer.alloc(600_000));
      expect(zeros.stdout.toString().slice(0, 64)).toBe(sha256(Buffer.alloc(600_000)));
    });

    const feed = async (argv: string[], total: number): Promise<string> => {
      const { exec } = await box.exec(argv, { stdin: 'open', waitMs: 0 });
      const chunk = 200_000;
      for (let offset = 0; offset < total; ) {
        const bytes = Buffer.alloc(Math.min(chunk, total - offset));
        const { data } = await box.call('stdin', { execId: exec.execId, offset, close: offset + bytes.byteLength >= total }, bytes);
        expect(data.nextOffset).toBe(offset + bytes.byteLength);
        offset = data.nextOffset;
      }
      expect(await box.wait(exec.execId)).toMatchObject({ exitCode: 0, state: 'ended' });
      return (await box.readAll(exec.execId, 'stdout')).toString('latin1');
    };

    test('10 MiB in parts', async () => {
      expect((await feed(['sha256sum'], 10 * MEBIBYTE)).slice(0, 64)).toBe('e5b844cc57f57094ea4585e235f36c78c1cd222262bb89d53c94dcb4d6b3e55d');
    });

    test('a reader that leaves early swallows the rest', async () => {
      expect(await feed(['head', '-c', '1'], 10 * MEBIBYTE)).toBe('\0');
    });

    test('writes have offsets, empty ones are not the end, and none follows the end', async () => {
      const { exec } = await box.exec(['cat'], { stdin: 'open', waitMs: 0 });
      const write = async (offset: number, text: string, close = false): Promise<number> =>
        (await box.call('stdin', { execId: exec.execId, offset, close }, Buffer.from(text))).data.nextOffset;
      expect(await write(0, 'x')).toBe(1);
      expect(await write(0, 'x')).toBe(1);
      expect(await write(1, '')).toBe(1);
      await expect(write(5, 'z')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(await write(1, 'y', true)).toBe(2);
      expect(await box.wait(exec.execId)).toMatchObject({ exitCode: 0 });
      expect((await box.readAll(exec.execId, 'stdout')).toString()).toBe('xy');
      const idle = await box.exec(['sleep', '63'], { stdin: 'open', waitMs: 0 });
      await box.call('stdin', { execId: idle.exec.execId, offset: 0, close: true });
      await expect(box.call('stdin', { execId: idle.exec.execId, offset: 0 }, Buffer.from('more'))).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
      await box.call('signal', { execId: idle.exec.execId, signal: 'KILL', tree: true });
      expect(await box.wait(idle.exec.execId)).toMatchObject({ reason: 'cancelled', exitCode: 137, signal: 'KILL' });
    });
  });
});
