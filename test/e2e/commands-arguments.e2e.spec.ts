/** Arguments, environment and directories of commands: every byte arrives as it was given, or the call says why it cannot. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { textOfBytes } from '#bus/op/byte-path.ts';
import { projectRoot } from '#runtime/project-root.ts';
import type { Sandbox } from '#sdk/mod.ts';
import { type FilesStand, startFilesStand } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';

let stand: FilesStand;
let box: Sandbox;

beforeAll(async () => {
  stand = await startFilesStand();
  box = stand.box;
});
afterAll(() => stand?.close());

/** Every byte but NUL, so valid and broken UTF-8 side by side. */
const BYTES = Uint8Array.from({ length: 255 }, (_, n) => n + 1);
const TEXT = textOfBytes(BYTES);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('bytes that are no UTF-8', () => {
  test('as an argument, in a script, in the environment', async () => {
    expect(hex((await box.exec(['printf', '%s', TEXT])).stdoutBytes)).toBe(hex(BYTES));
    expect(hex((await box.runShell("printf '%s' '\udcff\udc80é'")).stdoutBytes)).toBe('ff80c3a9');
    expect(hex((await box.exec(['sh', '-c', 'printf %s "$ODD"'], { env: { ODD: TEXT } })).stdoutBytes)).toBe(hex(BYTES));
  });

  test('variables have names that no shell could set, and a refusal says what a name is', async () => {
    const env = { 'a-b': '1', '9': '', 'BASH_FUNC_f%%': '() {  :\n}', 'npm_config_//host/:key': 'x y\n', 'A B': '=' };
    const lines = (await box.exec(['cat', '/proc/self/environ'], { env })).stdout.split('\0');
    for (const [name, value] of Object.entries(env)) expect(lines).toContain(`${name}=${value}`);
    for (const [name, shown] of [
      ['', '""'],
      ['A=B', 'A=B'],
      ['A\0', '"A\\u0000"'],
      ['é', '"é"'],
    ] as const) {
      const error = await refusal(box.exec(['true'], { env: { [name]: '1' } }));
      expect(error.code).toBe('INVALID_ARGUMENT');
      expect(error.message).toContain(`env.${shown}: a variable has a name of printable ASCII without =`);
    }
  });

  test('a name that a listing gave is an argument, and a working directory', async () => {
    await box.files.mkdir('/w/\udcfe\n', { parents: true });
    await box.files.write('/w/\udcfe\n/\udcff', 'found');
    const [entry] = await box.files.list('/w/\udcfe\n');
    expect((await box.exec(['cat', `/w/\udcfe\n/${entry?.name}`])).stdout).toBe('found');
    await box.files.mkdir('/w/\udcfd');
    expect(hex((await box.exec(['pwd'], { cwd: '/w/\udcfd' })).stdoutBytes)).toBe(hex(Buffer.from('/w/\xfd\n', 'latin1')));
  });

  test('what stands for no byte is refused, not replaced', async () => {
    for (const call of [box.exec(['echo', '\ud800']), box.exec(['env'], { env: { A: 'x\udfff' } }), box.exec(['pwd'], { cwd: '/\ud800' })])
      expect(await refusal(call)).toMatchObject({ code: 'INVALID_ARGUMENT', outcome: 'not_applied' });
  });

  test('through the command line too', async () => {
    const script = `
      $DSEC exec $ID printf %s $'\\377\\200' "é" | od -An -tx1
      printf x | $DSEC exec -i $ID dd $'of=/w/from\\377shell' 2> /dev/null
      $DSEC cat $ID $'/w/from\\377shell'`;
    const env = {
      ...process.env,
      DSEC_CONTEXT: stand.host.platform.contextFile,
      ID: box.id,
      DSEC: `${process.execPath} ${join(projectRoot(), 'build/dsec.mjs')}`,
    };
    const output = await new Promise<string>((resolve) => {
      execFile('bash', ['-c', script], { env }, (_, out, err) => resolve(out + err));
    });
    expect(output).toBe(' ff 80 c3 a9\nx');
    expect(await box.files.exists('/w/from\udcffshell')).toBe(true);
  });
});

describe('amounts', () => {
  test('one argument: as long as Linux takes it, and not a byte longer', async () => {
    const most = 131_071;
    expect((await box.exec(['awk', 'BEGIN { print length(ARGV[1]) }', 'x'.repeat(most)])).stdout).toBe(`${most}\n`);
    expect((await refusal(box.exec(['true', 'x'.repeat(most + 1)]))).message).toMatch(/at most 131071 bytes; use a file or stdin/);
  });

  test('many arguments, empty ones too', async () => {
    const count = 4_096 - 4;
    expect((await box.exec(['sh', '-c', 'echo $#', 'sh', ...Array<string>(count).fill('')])).stdout).toBe(`${count}\n`);
    expect((await refusal(box.exec(['true', ...Array<string>(4_096).fill('')]))).message).toMatch(/at most 4096 arguments/);
  });

  test('none, an empty name, NUL', async () => {
    expect((await refusal(box.exec([]))).message).toMatch(/needs at least the name of a program/);
    expect((await refusal(box.exec(['']))).code).toBe('COMMAND_NOT_FOUND');
    for (const argv of [['a\0b'], ['echo', '\0']]) expect((await refusal(box.exec(argv))).code).toBe('INVALID_ARGUMENT');
  });
});
