/** Control groups. The probes make one empty group of their own and remove it. */
import { existsSync, mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { absent, type Check, limited, type ProbeResult, present, presentIf } from '../finding.ts';
import { cgroupMounts, read } from '../helpers.ts';

const NEEDED = ['memory', 'cpu', 'pids'] as const;

const withGroup = <T>(parent: string, use: (group: string) => T): T => {
  const group = join(parent, `dsec-doctor-${process.pid}`);
  mkdirSync(group);
  try {
    return use(group);
  } finally {
    rmdirSync(group);
  }
};

const controllersOfV2 = (root: string | undefined): string[] => (root ? (read(join(root, 'cgroup.controllers')) ?? '').split(' ').filter(Boolean) : []);

const layout = (): ProbeResult => {
  const { v2, v1 } = cgroupMounts();
  const onV2 = controllersOfV2(v2);
  const missing = NEEDED.filter((controller) => !onV2.includes(controller) && !v1.has(controller));
  const where = NEEDED.every((controller) => onV2.includes(controller)) ? 'v2' : v2 ? 'mixed: v1 controllers, bare v2 tree' : 'v1';
  if (missing.length > 0) return absent(`${where}; no controller for ${missing.join(', ')}`);
  return where === 'v2' ? present(where) : limited(where);
};

/** A file that every non-root group of the v2 tree has when the kernel knows the feature. */
const fileOfV2 = (file: string): ProbeResult => {
  const { v2 } = cgroupMounts();
  return v2 ? withGroup(v2, (group) => presentIf(existsSync(join(group, file)))) : absent('no v2 tree is mounted');
};

/** Which way a paused sandbox's memory goes on this host. */
const reclaimOfV2 = (group: string): ProbeResult => {
  if (!existsSync(join(group, 'memory.reclaim'))) return absent('v2 without memory.reclaim: page by page alone');
  return existsSync(join(group, 'memory.swap.max'))
    ? present('v2: page by page, then memory.reclaim, with memory.swap.max open while paused')
    : limited('v2: memory.reclaim, and no memory.swap.max: this kernel has no swap, only what files fill is given back');
};

export const CGROUP_CHECKS: readonly Check[] = [
  {
    name: 'control-group layout',
    group: 'cgroups',
    required: true,
    usedFor: 'limits on memory, CPU and processes of each sandbox',
    cost: 'sandboxes without limits: none is created',
    fallback: 'v1 controllers; a child waits at a gate until it is attached to each',
    probe: layout,
  },
  {
    name: 'cgroup.kill',
    group: 'cgroups',
    required: false,
    usedFor: 'ending every process of a command or sandbox at once',
    cost: 'a fork bomb is chased instead of ended in one step',
    fallback: 'freeze, then signal every member until none is left',
    probe: () => fileOfV2('cgroup.kill'),
  },
  {
    name: 'freezing',
    group: 'cgroups',
    required: false,
    usedFor: 'pause; fencing of sandboxes when the node loses its lease',
    cost: 'sandboxes cannot be paused',
    fallback: 'the v1 freezer, thawed before a kill (a frozen process there ignores SIGKILL)',
    probe: () => {
      const modern = fileOfV2('cgroup.freeze');
      if (modern.status === 'present') return modern;
      return cgroupMounts().v1.has('freezer') ? limited('v1 freezer only') : absent();
    },
  },
  {
    name: 'memory.reclaim',
    group: 'cgroups',
    required: false,
    usedFor: 'moving a paused sandbox’s memory out of the way',
    cost: 'reclaim is slower and coarser',
    fallback: 'memory.force_empty, or process_madvise with MADV_PAGEOUT',
    probe: () => {
      const { v2, v1 } = cgroupMounts();
      if (v2 && controllersOfV2(v2).includes('memory')) return withGroup(v2, reclaimOfV2);
      const memory = v1.get('memory');
      return memory
        ? withGroup(memory, (group) => (existsSync(join(group, 'memory.force_empty')) ? limited('v1: page by page, then memory.force_empty') : absent()))
        : absent();
    },
  },
  {
    name: 'OOM counters',
    group: 'cgroups',
    required: false,
    usedFor: 'telling a command killed for memory from one that failed',
    cost: 'such a death is reported as a plain SIGKILL',
    fallback: null,
    probe: () => {
      const { v2, v1 } = cgroupMounts();
      if (v2 && controllersOfV2(v2).includes('memory')) return withGroup(v2, (group) => presentIf(existsSync(join(group, 'memory.events')), 'memory.events'));
      const memory = v1.get('memory');
      return memory
        ? withGroup(memory, (group) => presentIf((read(join(group, 'memory.oom_control')) ?? '').includes('oom_kill '), 'v1: memory.oom_control'))
        : absent();
    },
  },
];
