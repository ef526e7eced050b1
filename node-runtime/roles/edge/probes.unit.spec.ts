import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { Probes } from '#bus/edge/probes.ts';
import { HostProbes, kernelErrorOf } from './probes.ts';

test('lines of the kernel at error level or worse are told from others', () => {
  expect(kernelErrorOf('3,1207,55,-;blk_update_request: I/O error, dev sda\n SUBSYSTEM=block')).toBe('blk_update_request: I/O error, dev sda');
  expect(kernelErrorOf('11,1,1,-;a daemon at error level')).toBe('a daemon at error level');
  expect(kernelErrorOf('4,1208,56,-;a warning')).toBeNull();
  expect(kernelErrorOf('6,1209,57,c;info')).toBeNull();
  expect(kernelErrorOf('nonsense')).toBeNull();
});

test('who runs into its own limit is no error of the machine; a machine that is short of memory is one', () => {
  const killed = 'Killed process 9207 (exhaust) total-vm:134124kB, anon-rss:130432kB, file-rss:580kB, shmem-rss:0kB, UID:165536 pgtables:296kB oom_score_adj:0';
  expect(kernelErrorOf(`3,2210,40286811826,-;Memory cgroup out of memory: ${killed}`)).toBeNull();
  expect(kernelErrorOf(`3,2211,40286811827,-;Out of memory: ${killed}`)).toContain('Out of memory: Killed process 9207');
});

test('a look at this host gives what the contract says', () => {
  const probes = new HostProbes(tmpdir());
  const seen = probes.look();
  probes.close();
  expect(Probes.parse(seen)).toEqual(seen);
  expect(seen.diskFreeMiB).toBeGreaterThan(0);
  expect(seen.memoryAvailableMiB).toBeGreaterThan(0);
});
