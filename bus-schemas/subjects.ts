/**
 * Every subject of the bus, built and parsed here and nowhere else.
 *
 * | subject | kind |
 * |---|---|
 * | `dsec.api.<project>.<verb>` | core service, queue group `api` |
 * | `dsec.op.<project>.<edge>.<sandbox>.<op>` | core request to the owning Edge |
 * | `dsec.cmd.create.<lane>` | COMMANDS, work queue |
 * | `dsec.cmd.report.<lane>` | COMMANDS, work queue; what is heard about creates that have begun, never behind new ones |
 * | `dsec.cmd.edge.<edge>.<sandbox or _>` | COMMANDS, work queue; `_` is a packed batch |
 * | `dsec.ev.<shard>.<project>.<kind>.<home>.<id>` | EVENTS_<shard>, one message per commit |
 * | `dsec.out.<shard>.<project>.<kind>.<home>.<id>` | republish of stored commits |
 * | `dsec.exec.<project>.<edge>.<sandbox>` | EXEC, one message per start and end of a recorded command |
 * | `dsec.beat.<edge>` | core, 1 s |
 * | `dsec.lost.<edge>` | core, said by watchers when an Edge was declared lost |
 * | `dsec.iam.<verb>` | core request of a role to IAM, queue group `iam` |
 * | `dsec.quota.recall` | core, IAM to the holders of quota leases |
 * | `dsec.beat._.<role>.<instance>` | core, 1 s: presence of a service instance |
 * | `$O.<bucket>.M.<name>` | OBJ_<bucket>: info of an object in NATS' object store, its name in base64 |
 * | `$O.<bucket>.C.<upload>` | OBJ_<bucket>: chunks of an object |
 */
import type { EdgeName, JobId, ProjectName, RequestId, RolloutId, SandboxId, Shard } from './ids.ts';
import { NAME_PATTERN, parseSandboxId, shardFor, shardOfJob, shardOfRequest, shardOfRollout } from './ids.ts';

export const ACTOR_KINDS = ['sandbox', 'request', 'job', 'rollout', 'project', 'edge', 'environment'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Where one actor's log lives. `home` is the Edge that hosts it, or `_` for actors any service instance may host. */
export type ActorAddress = {
  readonly shard: Shard;
  readonly project: ProjectName;
  readonly kind: ActorKind;
  readonly home: EdgeName | '_';
  readonly id: string;
};

/** Project that owns the platform's own actors (Edges). No client may be given rights on it. */
export const SYSTEM_PROJECT = 'system' as ProjectName;
/** Shard of the platform's own actors. */
export const SYSTEM_SHARD = '0' as Shard;

export const COMMANDS_STREAM = 'COMMANDS';
export const eventsStream = (shard: Shard): string => `EVENTS_${shard}`;

export const commitSubject = (a: ActorAddress): string => `dsec.ev.${a.shard}.${a.project}.${a.kind}.${a.home}.${a.id}`;
export const outSubject = (a: ActorAddress): string => `dsec.out.${a.shard}.${a.project}.${a.kind}.${a.home}.${a.id}`;

/** Filter for commits: every part left out matches anything. */
export const commitFilter = (part: Partial<ActorAddress>): string => filter('ev', part);
export const outFilter = (part: Partial<ActorAddress>): string => filter('out', part);
const filter = (root: 'ev' | 'out', p: Partial<ActorAddress>): string =>
  `dsec.${root}.${p.shard ?? '*'}.${p.project ?? '*'}.${p.kind ?? '*'}.${p.home ?? '*'}.${p.id ?? '*'}`;

/** How a stream of one shard is bound and republished. */
export const eventsBinding = (shard: Shard) => ({
  subjects: [`dsec.ev.${shard}.>`],
  republish: { src: `dsec.ev.${shard}.>`, dest: `dsec.out.${shard}.>` },
});
/** Records of commands, of sandboxes that asked for them. */
export const EXEC_STREAM = 'EXEC';
export const EXEC_SUBJECTS = ['dsec.exec.*.*.*'];
export const execRecordSubject = (project: ProjectName, id: SandboxId): string => `dsec.exec.${project}.${parseSandboxId(id).edge}.${id}`;
/** What one Edge may record. */
export const execRecordFilter = (edge: EdgeName): string => `dsec.exec.*.${edge}.*`;
export const COMMANDS_SUBJECTS = ['dsec.cmd.create.*', 'dsec.cmd.report.*', 'dsec.cmd.edge.*.*'];

/** Reads a commit subject or its republished twin; undefined when it is neither. */
export const parseCommitSubject = (subject: string): ActorAddress | undefined => {
  const [root, branch, shard, project, kind, home, id, ...rest] = subject.split('.');
  if (root !== 'dsec' || (branch !== 'ev' && branch !== 'out') || rest.length > 0) return undefined;
  if (!shard || !/^[0-9a-z]$/.test(shard) || !project || !NAME_PATTERN.test(project) || !id || !NAME_PATTERN.test(id)) return undefined;
  if (!home || (home !== '_' && !NAME_PATTERN.test(home)) || !(ACTOR_KINDS as readonly (string | undefined)[]).includes(kind)) return undefined;
  return { shard: shard as Shard, project: project as ProjectName, kind: kind as ActorKind, home: home as EdgeName | '_', id };
};

export const sandboxAddress = (project: ProjectName, id: SandboxId): ActorAddress => {
  const { shard, edge } = parseSandboxId(id);
  return { shard, project, kind: 'sandbox', home: edge, id };
};
export const requestAddress = (project: ProjectName, id: RequestId): ActorAddress => ({
  shard: shardOfRequest(id),
  project,
  kind: 'request',
  home: '_',
  id,
});
export const jobAddress = (project: ProjectName, id: JobId): ActorAddress => ({ shard: shardOfJob(id), project, kind: 'job', home: '_', id });
export const rolloutAddress = (project: ProjectName, id: RolloutId): ActorAddress => ({ shard: shardOfRollout(id), project, kind: 'rollout', home: '_', id });
export const projectAddress = (project: ProjectName): ActorAddress => ({ shard: SYSTEM_SHARD, project, kind: 'project', home: '_', id: project });
export const edgeAddress = (edge: EdgeName): ActorAddress => ({
  shard: SYSTEM_SHARD,
  project: SYSTEM_PROJECT,
  kind: 'edge',
  home: '_',
  id: edge,
});

export const API_QUEUE = 'api';
/** Queue group of another role that answers verbs of its own. */
export const apiQueueOf = (role: string): string => `${API_QUEUE}-${role}`;
/** One verb of every project: what a role subscribes to that answers only some. */
export const apiVerbFilter = (verb: string): string => `dsec.api.*.${verb}`;
export const apiSubject = (project: ProjectName, verb: string): string => `dsec.api.${project}.${verb}`;
export const API_FILTER = 'dsec.api.*.*';
export const parseApiSubject = (subject: string): { project: string; verb: string } | undefined => {
  const [root, branch, project, verb, ...rest] = subject.split('.');
  if (root !== 'dsec' || branch !== 'api' || !project || !verb || rest.length > 0) return undefined;
  return { project, verb };
};

export const opSubject = (project: ProjectName, id: SandboxId, op: string): string => `dsec.op.${project}.${parseSandboxId(id).edge}.${id}.${op}`;
export const opFilter = (edge: EdgeName): string => `dsec.op.*.${edge}.*.*`;
export const parseOpSubject = (subject: string): { project: string; edge: string; sandbox: string; op: string } | undefined => {
  const [root, branch, project, edge, sandbox, op, ...rest] = subject.split('.');
  if (root !== 'dsec' || branch !== 'op' || !project || !edge || !sandbox || !op || rest.length > 0) return undefined;
  return { project, edge, sandbox, op };
};

/** The lane of a project: always the same, so that a lane knows its projects and serves them in turn. `laneCount` ≤ 36. */
export const laneOf = (project: ProjectName, laneCount: number): number => Number.parseInt(shardFor(laneCount, 'lane', project), 36);
export const createLaneSubject = (lane: number): string => `dsec.cmd.create.${lane}`;
export const reportLaneSubject = (lane: number): string => `dsec.cmd.report.${lane}`;
export const edgeCommandSubject = (edge: EdgeName, id: SandboxId | '_'): string => `dsec.cmd.edge.${edge}.${id}`;
export const edgeCommandFilter = (edge: EdgeName): string => `dsec.cmd.edge.${edge}.*`;

/** What roles ask of IAM: core requests in the platform's account, queue group `iam`. */
export const IAM_QUEUE = 'iam';
export const iamSubject = (verb: string): string => `dsec.iam.${verb}`;
export const IAM_FILTER = 'dsec.iam.*';
export const parseIamSubject = (subject: string): string | undefined => /^dsec\.iam\.([A-Za-z]+)$/.exec(subject)?.[1];
/** Where nats-servers ask who a connecting client is. */
export const CALLOUT_SUBJECT = '$SYS.REQ.USER.AUTH';
/** IAM asks holders for what they have not spent of the leases named. */
export const QUOTA_RECALL = 'dsec.quota.recall';

export const beatSubject = (edge: EdgeName): string => `dsec.beat.${edge}`;
export const BEAT_FILTER = 'dsec.beat.*';
/** Presence of one instance of a service role, for roles that share actors among their instances. */
export const presenceSubject = (role: string, instance: string): string => `dsec.beat._.${role}.${instance}`;
export const presenceFilter = (role: string): string => `dsec.beat._.${role}.*`;

export const lostSubject = (edge: EdgeName): string => `dsec.lost.${edge}`;
export const LOST_FILTER = 'dsec.lost.*';

/** Everything a client of one project may publish and subscribe to, its own inboxes aside. Also what its account imports. */
export const clientRights = (project: ProjectName) => ({
  services: [apiSubject(project, '*'), `dsec.op.${project}.*.*.*`],
  streams: [outFilter({ project }), LOST_FILTER],
});
/** Every request subject of clients and every subject republished to them: what the platform's account exports. */
export const CLIENT_EXPORTS = { services: [API_FILTER, 'dsec.op.*.*.*.*'], streams: [outFilter({}), LOST_FILTER] } as const;

// Object store: the names are those of NATS' own clients, so that their tools read what we write.

export const bucketStream = (bucket: string): string => `OBJ_${bucket}`;
export const bucketSubjects = (bucket: string): string[] => [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`];
export const objectInfoSubject = (bucket: string, name: string): string =>
  `$O.${bucket}.M.${Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_')}`;
/** Infos of every object; `*`: of every bucket. */
export const objectInfoFilter = (bucket: string): string => `$O.${bucket}.M.*`;
export const objectChunkSubject = (bucket: string, upload: string): string => `$O.${bucket}.C.${upload}`;
