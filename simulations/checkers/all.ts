/** Every checker there is, in the order of the table in ARCHITECTURE.md. */
import { auditor } from './auditor.ts';
import { capChecker } from './cap.ts';
import type { MakeChecker } from './checker.ts';
import { durChecker } from './dur.ts';
import { effectChecker } from './effect.ts';
import { iamChecker } from './iam.ts';
import { idemChecker } from './idem.ts';
import { jobChecker } from './job.ts';
import { liveChecker } from './live.ts';
import { ownChecker } from './own.ts';
import { quotaChecker } from './quota.ts';
import { replayChecker } from './replay.ts';
import { schemaChecker } from './schema.ts';
import { seqChecker } from './seq.ts';
import { zeroChecker } from './zero.ts';

/** The broken rule that explains most comes first: one step may break several. */
export const CHECKERS: readonly MakeChecker[] = [
  seqChecker,
  durChecker,
  idemChecker,
  schemaChecker,
  replayChecker,
  capChecker,
  ownChecker,
  quotaChecker,
  iamChecker,
  jobChecker,
  effectChecker,
  auditor,
  liveChecker,
  zeroChecker,
];
