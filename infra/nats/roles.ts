/**
 * What each role of the platform may publish and subscribe to. A wrong program or a stolen key of one role cannot speak for another.
 *
 * JetStream's own API (`$JS.API`) is open to every role: consumers and reads by subject go through it. Clients live in other
 * accounts, which have no JetStream at all (`config.ts`). @paper §3.2
 */
import { JOB_API } from '#bus/api/jobs.ts';
import type { EdgeName } from '#bus/ids.ts';
import {
  API_FILTER,
  apiVerbFilter,
  BEAT_FILTER,
  CLIENT_EXPORTS,
  beatSubject,
  COMMANDS_SUBJECTS,
  commitFilter,
  CALLOUT_SUBJECT,
  edgeCommandFilter,
  execRecordFilter,
  IAM_FILTER,
  LOST_FILTER,
  objectChunkSubject,
  objectInfoFilter,
  opFilter,
  outFilter,
  QUOTA_RECALL,
  presenceFilter,
  SYSTEM_PROJECT,
  SYSTEM_SHARD,
} from '#bus/subjects.ts';

export const ROLES = ['apiserver', 'placement', 'watcher', 'iam', 'jobs', 'edge', 'operator'] as const;
export type Role = (typeof ROLES)[number];

export type Permissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };

/** Answers to requests: the caller's inbox inside the account, the server's rewritten reply for a client's request from outside it. */
const ANSWERS = ['_INBOX.>', '_R_.>'];
const JETSTREAM = ['$JS.API.>', '$JS.ACK.>', '$JS.FC.>'];
/** Where nats-servers take answers to their own questions: who a connecting client is. */
const SERVERS_INBOXES = '$SYS._INBOX.>';
const INBOXES = ['_INBOX.>'];
/** The account's buckets hold layers and nothing else; which is used is the roles' configuration. Who removes a name writes an info. */
const LAYER_NAMES = objectInfoFilter('*');
const LAYER_BYTES = objectChunkSubject('*', '*');
const CREATE_LANES = COMMANDS_SUBJECTS.filter((subject) => subject.startsWith('dsec.cmd.create.'));
const REPORT_LANES = COMMANDS_SUBJECTS.filter((subject) => subject.startsWith('dsec.cmd.report.'));
const EDGE_QUEUES = COMMANDS_SUBJECTS.filter((subject) => subject.startsWith('dsec.cmd.edge.'));

/** `edge` names the node for the role of that name: an Edge commits for its own sandboxes only. */
export const permissionsOf = (role: Role, edge: EdgeName): Permissions => {
  const speaks = (...subjects: readonly string[]): readonly string[] => [...subjects, ...JETSTREAM, ...ANSWERS];
  const hears = (...subjects: readonly string[]): readonly string[] => [...subjects, ...INBOXES];
  switch (role) {
    case 'apiserver':
      return { publish: speaks(...CREATE_LANES, ...EDGE_QUEUES, LAYER_NAMES), subscribe: hears(API_FILTER, BEAT_FILTER, outFilter({})) };
    case 'placement':
      return {
        publish: speaks(
          commitFilter({ kind: 'request', home: '_' }),
          ...CREATE_LANES,
          ...REPORT_LANES,
          ...EDGE_QUEUES,
          IAM_FILTER,
          presenceFilter('placement'),
        ),
        subscribe: hears(BEAT_FILTER, outFilter({}), QUOTA_RECALL, presenceFilter('placement')),
      };
    case 'watcher':
      return { publish: speaks(commitFilter({ project: SYSTEM_PROJECT, kind: 'edge', home: '_' }), LOST_FILTER), subscribe: hears(BEAT_FILTER, outFilter({})) };
    case 'iam':
      return {
        publish: speaks(commitFilter({ kind: 'project', home: '_' }), QUOTA_RECALL, SERVERS_INBOXES),
        subscribe: hears(API_FILTER, IAM_FILTER, outFilter({}), CALLOUT_SUBJECT),
      };
    case 'jobs': // decides for jobs and rollouts, and uses the platform as a client of any project does
      return {
        publish: speaks(
          commitFilter({ kind: 'job', home: '_' }),
          commitFilter({ kind: 'rollout', home: '_' }),
          ...CLIENT_EXPORTS.services,
          presenceFilter('jobs'),
        ),
        subscribe: hears(...Object.keys(JOB_API).map(apiVerbFilter), presenceFilter('jobs'), outFilter({}), LOST_FILTER),
      };
    case 'edge':
      return {
        publish: speaks(
          commitFilter({ kind: 'sandbox', home: edge }),
          commitFilter({ project: SYSTEM_PROJECT, kind: 'edge', home: '_', id: edge }),
          beatSubject(edge),
          execRecordFilter(edge),
          ...REPORT_LANES,
          edgeCommandFilter(edge),
          LAYER_NAMES,
          LAYER_BYTES,
        ),
        subscribe: hears(
          opFilter(edge),
          outFilter({ home: edge }),
          outFilter({ project: SYSTEM_PROJECT, kind: 'edge', home: '_', id: edge }),
          outFilter({ shard: SYSTEM_SHARD, kind: 'project', home: '_' }), // who may operate
        ),
      };
    case 'operator': // people and tests: everything inside the platform's account
      return { publish: ['>'], subscribe: ['>'] };
  }
};
