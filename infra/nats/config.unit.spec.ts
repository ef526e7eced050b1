import { describe, expect, test } from 'vitest';
import type { EdgeName, ProjectName } from '#bus/ids.ts';
import { type BusSettings, natsConfig } from './config.ts';
import { ROLES, type Role } from './roles.ts';

const settings: BusSettings = {
  serverName: 'dsec-test',
  port: 4_222,
  storeDir: '/data/store',
  logFile: '/data/server.log',
  syncIntervalMs: 1_000,
  edge: 'n1' as EdgeName,
  roles: Object.fromEntries(ROLES.map((role) => [role, `U_${role}`])) as Record<Role, string>,
  systemUser: 'U_SYSTEM',
  clients: [
    { project: 'blue' as ProjectName, name: 'main', publicKey: 'U_BLUE' },
    { project: 'red' as ProjectName, name: 'main', publicKey: 'U_RED' },
    { project: 'blue' as ProjectName, name: 'second', publicKey: 'U_BLUE_2' },
  ],
};
const parsed = (changes: Partial<BusSettings> = {}) => JSON.parse(natsConfig({ ...settings, ...changes }));

describe('natsConfig', () => {
  test('listens on loopback only', () => {
    expect(parsed().listen).toBe('127.0.0.1:4222');
  });

  test('flushes at the interval, or before every acknowledgement', () => {
    expect(parsed().jetstream.sync_interval).toBe('1000ms');
    expect(parsed({ syncIntervalMs: 0 }).jetstream.sync_interval).toBe('always');
  });

  test('gives each project one account that imports its own subjects and nothing else', () => {
    const { accounts } = parsed();
    expect(Object.keys(accounts)).toEqual(['SYS', 'PLATFORM', 'CLIENTS_blue', 'CLIENTS_red']);
    expect(accounts.CLIENTS_blue.users).toHaveLength(2);
    const imported = accounts.CLIENTS_red.imports.map((i: { service?: { subject: string }; stream?: { subject: string } }) => (i.service ?? i.stream)?.subject);
    expect(imported).toEqual(['dsec.api.red.*', 'dsec.op.red.*.*.*', 'dsec.out.*.red.*.*.*', 'dsec.lost.*']);
    expect(accounts.CLIENTS_red.jetstream).toBeUndefined();
  });

  test('lets an Edge commit for its own sandboxes only', () => {
    const edge = parsed().accounts.PLATFORM.users.find((user: { nkey: string }) => user.nkey === 'U_edge');
    expect(edge.permissions.publish).toContain('dsec.ev.*.*.sandbox.n1.*');
    expect(edge.permissions.publish).not.toContain('dsec.ev.*.*.sandbox.*.*');
    expect(edge.permissions.subscribe).toContain('dsec.op.*.n1.*.*');
  });
});
