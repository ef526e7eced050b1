/** The runner of tools against real programs. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import { runTool } from './run-tool.ts';

const shell = (script: string, extra: Partial<Parameters<typeof runTool>[0]> = {}): Promise<string> =>
  runTool({ command: ['sh', '-c', script], doing: 'try', ...extra });

describe('a tool', () => {
  test('that ends well gives its output, line by line or whole', async () => {
    const [lines, output]: [string[], string[]] = [[], []];
    await shell('echo out; echo err >&2; printf last', { onLine: (line) => lines.push(line), onOutputLine: (line) => output.push(line) });
    expect([lines, output]).toEqual([['err'], ['out', 'last']]);
    expect(await shell('printf "a\\nb"', { collect: true })).toBe('a\nb');
  });

  test.each<[string, string, string, string]>([
    ['that fails says why on one line', 'echo first >&2; echo second >&2; exit 3', 'INVALID_ARGUMENT', 'could not try: sh failed (exit 3): first; second'],
    ['that is killed is told apart', 'kill -KILL $$', 'INVALID_ARGUMENT', 'sh failed (SIGKILL)'],
    ['that finds no room is NO_SPACE', 'echo "cp: write error: No space left on device" >&2; exit 1', 'NO_SPACE', 'the disk is full'],
    ['that finds no room and hangs is ended', 'echo "mkfs: No space left on device" >&2; sleep 600', 'NO_SPACE', 'the disk is full'],
  ])('%s', async (_, script, code, words) => {
    await expect(shell(script)).rejects.toMatchObject({ code, message: expect.stringContaining(words) });
  });

  test('that is not there is named with its package, behind a wrapper too', async () => {
    await expect(runTool({ command: ['mkfs.no-such-thing'], doing: 'try' })).rejects.toMatchObject({
      code: 'HOST_UNFIT',
      message: expect.stringContaining('mkfs.no-such-thing is not installed'),
    });
    await expect(runTool({ command: ['env', '--', 'xz-not-there'], program: 'xz', doing: 'try' })).rejects.toMatchObject({
      code: 'HOST_UNFIT',
      message: expect.stringContaining('package xz-utils'),
    });
  });

  test('is explained by who knows it', async () => {
    const explain = ({ output }: { output: string }): DsecError => DsecError.of('INTERNAL', `it said ${output}`);
    await expect(shell('printf "{}"; exit 1', { collect: true, explain })).rejects.toMatchObject({ code: 'INTERNAL', message: 'it said {}' });
  });

  test('that is cancelled ends with all it started, even what ignores SIGTERM', async () => {
    const abort = new AbortController();
    const pids: number[] = [];
    const script = 'trap "" TERM; (trap "" TERM; sleep 600) & echo $!; echo $$; wait; sleep 600';
    const ended = shell(script, { signal: abort.signal, onOutputLine: (line) => pids.push(Number(line)) === 2 && abort.abort() });
    await expect(ended).rejects.toMatchObject({ code: 'CANCELLED', outcome: 'not_applied' });
    for (const pid of pids) await expect.poll(() => isAlive(pid)).toBe(false);
    await expect(shell('true', { signal: abort.signal })).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});

/** A process that nobody has waited for yet has an empty command line. */
const isAlive = async (pid: number): Promise<boolean> => (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) !== '';
