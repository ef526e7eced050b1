/** What each verb asks of its caller in the project that the subject names. One row per verb, exhaustive by type. @paper §3.2 */
import type { Action } from '../project/policy.ts';
import type { ApiVerb } from './schema.ts';

/** `member`: whoever may do anything at all in the project. `anyone`: whoever has proved who it is. */
export type Demand = Action | 'member' | 'anyone';

export const VERB_DEMANDS = {
  info: 'member',
  fleet: 'fleet.read',
  create: 'sandbox.create',
  request: 'sandbox.read',
  get: 'sandbox.read',
  list: 'sandbox.read',
  events: 'sandbox.read',
  stop: 'sandbox.control',
  delete: 'sandbox.control',
  pause: 'sandbox.control',
  pauseMany: 'sandbox.control',
  resumeMany: 'sandbox.control',
  resume: 'sandbox.control',
  snapshot: 'sandbox.control',
  snapshots: 'sandbox.read',
  deleteSnapshot: 'sandbox.control',
  extend: 'sandbox.control',
  /** And `sandbox.control`, which its handler asks for. */
  fork: 'sandbox.create',
  createProject: 'project.create',
  getProject: 'project.read',
  listProjects: 'project.read',
  setQuota: 'project.quota',
  grant: 'policy.grant',
  revoke: 'policy.grant',
  createPrincipal: 'principal.manage',
  removePrincipal: 'principal.manage',
  listPrincipals: 'project.read',
  issueCredential: 'principal.manage',
  revokeCredential: 'principal.manage',
  whoami: 'anyone',
  audit: 'audit.read',
  createJob: 'sandbox.create',
  getJob: 'sandbox.read',
  listJobs: 'sandbox.read',
  claimJob: 'sandbox.control',
  renewJob: 'sandbox.control',
  releaseJob: 'sandbox.control',
  pauseJob: 'sandbox.control',
  resumeJob: 'sandbox.control',
  stopJob: 'sandbox.control',
  extendJob: 'sandbox.control',
  startRollouts: 'sandbox.create',
  getRollout: 'sandbox.read',
  listRollouts: 'sandbox.read',
  answerTurn: 'sandbox.control',
  stopRollout: 'sandbox.control',
  rolloutEvents: 'sandbox.read',
} as const satisfies Record<ApiVerb, Demand>;

/** What an operation on a sandbox (`dsec.op`) asks of its caller: commands, files and ports alike are the inside of it. */
export const OP_DEMAND: Action = 'sandbox.exec';
