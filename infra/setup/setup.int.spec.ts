/** Set-up's own behaviour, run for real with a PATH that lacks things. Installing is not tried here: `--check` changes nothing. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const SETUP = join(import.meta.dirname, 'setup.sh');
const TOOLS = [
  'awk',
  'bash',
  'basename',
  'cat',
  'cut',
  'date',
  'dirname',
  'find',
  'flock',
  'grep',
  'head',
  'id',
  'mkdir',
  'paste',
  'readlink',
  'sed',
  'sh',
  'sha256sum',
  'sort',
  'uname',
  'xargs',
];
const OTHERS = ['node', 'npm', 'gcc', 'make', 'apt-get', 'dpkg', 'mmdebstrap', 'mkfs.erofs', 'setpriv', 'ip'];

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-setup-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const whereIs = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(':')
    .map((folder) => join(folder, program))
    .find(existsSync);

/** Runs set-up with a PATH of chosen programs only. */
const setUp = (programs: readonly string[], ...flags: readonly string[]) => {
  for (const program of [...TOOLS, ...programs]) {
    const path = whereIs(program);
    if (path) symlinkSync(path, join(directory, program));
  }
  const { status, stderr } = spawnSync('/bin/bash', [SETUP, ...flags], { env: { PATH: directory, HOME: directory }, encoding: 'utf8' });
  return { status, lines: stderr.split('\n').filter((line) => line.startsWith('setup')) };
};
const without = (...absent: readonly string[]): string[] => OTHERS.filter((program) => !absent.includes(program));
const missing = (lines: readonly string[]): string[] => lines.filter((line) => line.startsWith('setup  missing'));

describe('set-up', () => {
  test('says in one line that there is no gcc, and ends with 1', () => {
    const { status, lines } = setUp(without('gcc'), '--check');
    expect(status).toBe(1);
    expect(missing(lines)).toEqual(['setup  missing      no gcc: apt-get install gcc libc6-dev make']);
  });

  test('lists everything that is missing before it gives up', () => {
    const { status, lines } = setUp(without('gcc', 'node', 'apt-get'), '--check');
    expect(status).toBe(1);
    expect(missing(lines)).toEqual([
      expect.stringMatching(/not a Debian system.*erofs-utils.*mmdebstrap.*nats-server >= 2\.14/),
      expect.stringMatching(/Node\.js is not on PATH.*>= 20\.19/),
      expect.stringMatching(/no gcc/),
    ]);
    expect(lines.at(-1)).toBe('setup  stopped: the 3 lines above must be mended first.');
  });

  test('names the packages that it would install', () => {
    const { status, lines } = setUp(without('mmdebstrap', 'mkfs.erofs'), '--check');
    expect(status).toBe(1);
    expect(missing(lines)).toContain('setup  missing      packages erofs-utils mmdebstrap: npm run setup installs them');
  });

  test('refuses an argument that it does not know', () => {
    expect(setUp(OTHERS, '--chek')).toMatchObject({ status: 2 });
  });
});
