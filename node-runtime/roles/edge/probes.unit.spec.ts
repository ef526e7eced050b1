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

test('a look at this host gives what the contract says', () => {
  const probes = new HostProbes(tmpdir());
  const seen = probes.look();
  probes.close();
  expect(Probes.parse(seen)).toEqual(seen);
  expect(seen.diskFreeMiB).toBeGreaterThan(0);
  expect(seen.memoryAvailableMiB).toBeGreaterThan(0);
});
