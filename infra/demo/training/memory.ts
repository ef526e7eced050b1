/** Memory of the job's sandboxes as the kernel counts it: what only their processes hold, what the machine has left. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Platform } from '#runtime/roles/up/platform.ts';
import { cgroupNameOf } from '#runtime/config.ts';

export type Memory = { readonly residentMiB: number; readonly availableMiB: number };

const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // it ended while it was looked at
  }
};

/** Anonymous memory of every process in the platform's control groups: pages of shared files are not theirs to give back. */
export const memoryOfJob = (platform: Platform): { residentMiB: number } => {
  const name = `/${cgroupNameOf(platform.config)}/`;
  let kib = 0;
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid) || !textOf(`/proc/${pid}/cgroup`).includes(name)) continue;
    kib += Number(/^RssAnon:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0);
  }
  return { residentMiB: Math.round(kib / 1_024) };
};

export const availableMiB = (): number => Math.round(Number(/^MemAvailable:\s+(\d+)/m.exec(textOf('/proc/meminfo'))?.[1] ?? 0) / 1_024);
