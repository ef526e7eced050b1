import { existsSync } from 'node:fs';
import { absent, type Check, limited, present, presentIf } from '../finding.ts';
import { read } from '../helpers.ts';
import { userfaultfd, withFd } from '../syscalls.ts';

const UFFD_USER_MODE_ONLY = 1;

export const MEMORY_CHECKS: readonly Check[] = [
  {
    name: 'zram',
    group: 'memory',
    required: false,
    usedFor: 'compressed swap for paused sandboxes',
    cost: 'a paused sandbox keeps its memory',
    fallback: 'swap on disk where there is one',
    probe: () => {
      if (existsSync('/sys/class/zram-control/hot_add')) return present();
      const swaps = (read('/proc/swaps') ?? '').split('\n').length - 1;
      return swaps > 0 ? limited(`${swaps} swap areas, none of zram`) : absent();
    },
  },
  {
    name: 'userfaultfd',
    group: 'memory',
    required: false,
    usedFor: 'restoring a microVM’s memory on demand',
    cost: 'memory is read whole before a restored microVM runs',
    fallback: 'the memory file is mapped privately',
    probe: () => withFd(userfaultfd(UFFD_USER_MODE_ONLY), () => present()),
  },
  {
    name: 'DAMON',
    group: 'memory',
    required: false,
    usedFor: 'finding cold pages of virtual machines',
    cost: 'cold file pages stay in memory',
    fallback: 'reclaim under pressure',
    probe: () => presentIf(existsSync('/sys/kernel/mm/damon/admin')),
  },
];
