/** Looks at the host: disk, memory, the kernel's own log. Facts for beats; what they mean is the watcher's to say. */
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import type { Probes } from '#bus/edge/probes.ts';
import type { MiB } from '#bus/units.ts';
import { availableMemoryMiB, freeDiskMiB, machineOf } from './capacity.ts';

const PROBE_LIMITS = {
  /** Lines of the kernel's log read at one look; a storm of them is read over several looks. */
  linesPerLook: 512,
  /** The kernel cuts its lines below this. */
  lineBytes: 8_192,
  textChars: 200,
} as const;

/** `KERN_ERR` and what is worse. */
const ERROR_LEVEL = 3;
/**
 * Logged as an error for each process that dies at the limit of its own control group. That is what limits are for: whoever runs out of
 * memory inside must not make the node look ill. When the machine itself is short, the line begins without the first two words.
 */
const LIMIT_REACHED = 'Memory cgroup out of memory: ';

export class HostProbes {
  readonly #dir: string;
  readonly #kernelLog: number | null;
  readonly #buffer = Buffer.alloc(PROBE_LIMITS.lineBytes);
  #errors = 0;
  #newest: string | null = null;

  /** `dir` lies on the file system that sandboxes write to. */
  constructor(dir: string) {
    this.#dir = dir;
    this.#kernelLog = openKernelLog();
    if (this.#kernelLog !== null) while (this.#nextLine() !== null); // what happened before this start is not this Edge's
  }

  look(): Probes {
    if (this.#kernelLog !== null) this.#readKernelLog();
    return {
      diskFreeMiB: freeDiskMiB(this.#dir) as MiB,
      memoryAvailableMiB: availableMemoryMiB() as MiB,
      memoryPressurePercent: memoryPressurePercent(),
      kernelErrors: this.#kernelLog === null ? null : this.#errors,
      kernelError: this.#newest,
      machine: machineOf(this.#dir),
    };
  }

  close(): void {
    if (this.#kernelLog !== null) closeSync(this.#kernelLog);
  }

  #readKernelLog(): void {
    for (let n = 0; n < PROBE_LIMITS.linesPerLook; n += 1) {
      const line = this.#nextLine();
      if (line === null) return;
      const error = kernelErrorOf(line);
      if (error === null) continue;
      this.#errors += 1;
      this.#newest = error;
    }
  }

  /** One record, or null when there is no further one. A record that was overwritten before it was read is skipped. */
  #nextLine(): string | null {
    for (;;) {
      try {
        const bytes = readSync(this.#kernelLog as number, this.#buffer, 0, this.#buffer.length, null);
        return bytes > 0 ? this.#buffer.toString('utf8', 0, bytes) : null;
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code !== 'EPIPE') return null;
      }
    }
  }
}

/** Message of a `/dev/kmsg` record (`priority,sequence,time,flags;text`) at error level or worse that tells of the machine; null for any other. */
export const kernelErrorOf = (record: string): string | null => {
  const match = /^(\d+),\d+,\d+,[^;]*;([^\n]*)/.exec(record);
  if (!match) return null;
  const level = Number(match[1]) & 7;
  const text = match[2] ?? '';
  return level <= ERROR_LEVEL && !text.startsWith(LIMIT_REACHED) ? text.slice(0, PROBE_LIMITS.textChars) : null;
};

const openKernelLog = (): number | null => {
  try {
    return openSync('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null; // not there, or not for us: a container without it
  }
};

const memoryPressurePercent = (): number | null => {
  try {
    const some = /^some avg10=([\d.]+)/m.exec(readFileSync('/proc/pressure/memory', 'utf8'))?.[1];
    return some === undefined ? null : Number(some);
  } catch {
    return null;
  }
};
