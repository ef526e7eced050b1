import { closeSync, existsSync, openSync } from 'node:fs';
import { absent, type Check, limited, present, presentIf } from '../finding.ts';
import { read } from '../helpers.ts';
import { checked, errnoOf, ioctl, userfaultfd, withFd } from '../syscalls.ts';

const UFFD_USER_MODE_ONLY = 1;
const PAGEMAP_SCAN = 0xc0_60_66_10;

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
    name: 'PAGEMAP_SCAN',
    group: 'memory',
    required: false,
    usedFor: 'giving the memory of paused sandboxes back page by page, and reading it back ahead of use',
    cost: 'a pause takes some four times as long, a resume reads nothing ahead',
    fallback: 'reclaim by the control group',
    probe: () => {
      const pagemap = openSync('/proc/self/pagemap', 'r');
      try {
        // without arguments: a kernel that has it complains of them, any other of the request
        return presentIf(errnoOf(() => checked('ioctl', ioctl(pagemap, PAGEMAP_SCAN, 0))) !== 'ENOTTY');
      } finally {
        closeSync(pagemap);
      }
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
