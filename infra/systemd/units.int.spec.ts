/** The units: what systemd says of them, and the settings that the platform depends on. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { LOST_EXIT, SERVED_ROLES, SUPERSEDED_EXIT } from '#runtime/roles/supervision.ts';

const DIR = import.meta.dirname;
const UNITS = readdirSync(DIR).filter((file) => /\.(service|target)$/.test(file));
const textOf = (unit: string): string => readFileSync(join(DIR, unit), 'utf8');
const settingsOf = (unit: string, key: string): string[] =>
  textOf(unit)
    .split('\n')
    .flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));

/** Where systemd's own checker is; without it the settings below are still checked. */
const ANALYZE = ['/usr/bin/systemd-analyze', '/bin/systemd-analyze'].find(existsSync);

describe.runIf(ANALYZE !== undefined)('systemd-analyze verify', () => {
  /** Programs and users of a real host are not here: every path is replaced by one that exists, every user by root. */
  const prepared = (dir: string): string[] =>
    UNITS.map((unit) => {
      const name = unit.replace('@.', '@apiserver.');
      const text = textOf(unit)
        .replaceAll('/usr/bin/nats-server', '/bin/true')
        .replaceAll('/usr/bin/dsec', '/bin/true')
        .replaceAll(/^(User|Group)=dsec$/gm, '$1=root');
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    });

  test('finds nothing wrong', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dsec-units-'));
    try {
      const files = prepared(dir);
      const { stderr } = await promisify(execFile)(ANALYZE as string, ['verify', '--man=no', '--recursive-errors=no', ...files], { timeout: 60_000 });
      const ours = stderr.split('\n').filter((line) => line.includes(dir) || /dsec/.test(line));
      expect(ours).toEqual([]);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});

describe('what the platform depends on', () => {
  test('an Edge that was superseded stays down, one that was lost comes back, sandboxes outlive both', () => {
    const edge = 'dsec-edge.service';
    expect(settingsOf(edge, 'RestartPreventExitStatus')).toEqual([String(SUPERSEDED_EXIT)]);
    expect(settingsOf(edge, 'RestartPreventExitStatus').join(' ').split(' ')).not.toContain(String(LOST_EXIT));
    expect(settingsOf(edge, 'Restart')).toEqual(['always']);
    expect(settingsOf(edge, 'KillMode')).toEqual(['process']);
    expect(settingsOf(edge, 'Delegate')).toEqual(['yes']);
    expect(settingsOf(edge, 'RuntimeDirectoryPreserve')).toEqual(['yes']);
  });

  test('a server of the bus hands its clients over, and has the time for it', () => {
    expect(settingsOf('dsec-nats.service', 'ExecStop')).toEqual(['/bin/kill -USR2 $MAINPID']);
    expect(Number(settingsOf('dsec-nats.service', 'TimeoutStopSec')[0])).toBeGreaterThan(30);
  });

  test('every service is started again, and those that need no privileges have none', () => {
    for (const unit of UNITS.filter((file) => file.endsWith('.service'))) expect(settingsOf(unit, 'Restart'), unit).toEqual(['always']);
    for (const unit of ['dsec-nats.service', 'dsec-role@.service']) {
      expect(settingsOf(unit, 'NoNewPrivileges'), unit).toEqual(['yes']);
      expect(settingsOf(unit, 'CapabilityBoundingSet'), unit).toEqual(['']);
      expect(settingsOf(unit, 'User'), unit).toEqual(['dsec']);
    }
  });

  test('every role has a unit, and the table names it', () => {
    const readme = textOf('README.md');
    for (const role of SERVED_ROLES.filter((one) => one !== 'edge')) expect(readme).toContain(`\`${role}\``);
    expect(settingsOf('dsec-role@.service', 'ExecStart')).toEqual(['/usr/bin/dsec %i --config /etc/dsec/%i.json']);
  });
});
