/** What the doctor says of one thing that the platform uses, and how it finds out. */

/** `limited`: there, but less than the platform would like. */
export type Status = 'present' | 'absent' | 'limited';

export type Group = 'host' | 'kernel' | 'layers' | 'cgroups' | 'network' | 'memory' | 'virtual machines' | 'limits' | 'programs';

/** Constant part of a check. */
export type Subject = {
  readonly name: string;
  readonly group: Group;
  /** Without it no sandbox runs: its absence makes `dsec doctor` exit 1. */
  readonly required: boolean;
  readonly usedFor: string;
  /** What its absence costs. */
  readonly cost: string;
  /** What the platform does instead; null where there is nothing. */
  readonly fallback: string | null;
};

export type Finding = Subject & {
  readonly status: Status;
  /** What was seen: a version, a number, an error. */
  readonly detail: string;
};

export type ProbeResult = { readonly status: Status; readonly detail: string };

export const present = (detail = ''): ProbeResult => ({ status: 'present', detail });
export const absent = (detail = ''): ProbeResult => ({ status: 'absent', detail });
export const limited = (detail: string): ProbeResult => ({ status: 'limited', detail });
export const presentIf = (condition: boolean, detail = ''): ProbeResult => (condition ? present(detail) : absent(detail));

export type ProbeContext = {
  /** An empty directory of this run on the disk that will hold the data; removed afterwards. */
  readonly scratch: string;
  readonly projectRoot: string;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** A probe tries the thing itself where that leaves nothing behind. One that throws is reported as absent, with what was thrown. */
export type Check = Subject & { readonly probe: (context: ProbeContext) => Promise<ProbeResult> | ProbeResult };
