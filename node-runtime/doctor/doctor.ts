/**
 * Runs every check and tells what was found. Leaves nothing behind: scratch files lie in one directory that is removed, mounts are
 * detached ones, control groups are removed by their probes. Decides nothing: roles probe for themselves what they use.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { projectRoot } from '../project-root.ts';
import { CGROUP_CHECKS } from './checks/cgroups.ts';
import { HOST_CHECKS } from './checks/host.ts';
import { KERNEL_CHECKS } from './checks/kernel.ts';
import { LAYER_CHECKS } from './checks/layers.ts';
import { LIMIT_CHECKS } from './checks/limits.ts';
import { MEMORY_CHECKS } from './checks/memory.ts';
import { NETWORK_CHECKS } from './checks/network.ts';
import { PROGRAM_CHECKS } from './checks/programs.ts';
import { VIRTUAL_MACHINE_CHECKS } from './checks/virtual-machines.ts';
import { absent, type Check, type Finding, type ProbeContext, type ProbeResult } from './finding.ts';

export const CHECKS: readonly Check[] = [
  ...HOST_CHECKS,
  ...LIMIT_CHECKS,
  ...KERNEL_CHECKS,
  ...LAYER_CHECKS,
  ...CGROUP_CHECKS,
  ...NETWORK_CHECKS,
  ...MEMORY_CHECKS,
  ...VIRTUAL_MACHINE_CHECKS,
  ...PROGRAM_CHECKS,
];

export type DoctorOptions = {
  /** Where the platform's data lies or will lie: layers and quotas are tried on its disk. */
  readonly dataDir?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly checks?: readonly Check[] | undefined;
};

export const runDoctor = async (options: DoctorOptions = {}): Promise<Finding[]> => {
  const scratch = await mkdtemp(join(scratchParent(options.dataDir), 'dsec-doctor-'));
  const context: ProbeContext = { scratch, projectRoot: projectRoot(), env: options.env ?? process.env };
  try {
    const findings: Finding[] = [];
    // One after another: some share scratch files, and a busy machine would make them slow rather than wrong.
    for (const check of options.checks ?? CHECKS) findings.push(await examine(check, context));
    return findings;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
};

/** What is required and missing. */
export const unfit = (findings: readonly Finding[]): Finding[] => findings.filter(({ required, status }) => required && status === 'absent');

const examine = async ({ probe, ...subject }: Check, context: ProbeContext): Promise<Finding> => ({ ...subject, ...(await resultOf(probe, context)) });

const resultOf = async (probe: Check['probe'], context: ProbeContext): Promise<ProbeResult> => {
  try {
    return await probe(context);
  } catch (thrown) {
    return absent(thrown instanceof Error ? thrown.message : String(thrown));
  }
};

/** The nearest directory above the data directory that exists; the probes must run on the same disk. */
const scratchParent = (dataDir: string | undefined): string => {
  if (!dataDir) return tmpdir();
  let directory = resolve(dataDir);
  while (!existsSync(directory)) directory = dirname(directory);
  return directory;
};
