/**
 * Every metric that a process shows: name, meaning, labels. Nothing else names one. Labels hold roles, verbs, codes, kinds and names of
 * nodes, never ids of sandboxes, requests or projects, so that their number is bounded by the program and the fleet.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { DURATION_BUCKETS, OPS_LIMITS } from './limits.ts';

export type Instruments = ReturnType<typeof createInstruments>;

const buckets = [...DURATION_BUCKETS];

export const createInstruments = () => {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'dsec_' });
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) => new Counter({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) => new Gauge({ name, help, labelNames, registers });
  const seconds = <L extends string>(name: string, help: string, ...labelNames: L[]) => new Histogram({ name, help, labelNames, buckets, registers });
  return {
    registry,
    // the bus
    busConnected: gauge('dsec_bus_connected', 'Whether the role is connected to the bus.', 'role'),
    commits: counter('dsec_commits_total', 'Appends to the event log, by what became of them.', 'role', 'kind', 'outcome'),
    commitSeconds: seconds('dsec_commit_seconds', 'From handing an append to the bus until its outcome is known.', 'role', 'kind'),
    enqueued: counter('dsec_commands_enqueued_total', 'Commands given to the work queue, by what became of them.', 'role', 'outcome'),
    deliveries: counter('dsec_command_deliveries_total', 'Commands taken from the work queue, by how they were left.', 'role', 'consumer', 'result'),
    inHand: gauge('dsec_commands_in_hand', 'Commands that this process works on.', 'role', 'consumer'),
    pending: gauge('dsec_commands_pending', 'Commands that wait in the queue of a consumer and were not delivered yet.', 'role', 'consumer'),
    unacknowledged: gauge('dsec_commands_unacknowledged', 'Commands that were delivered to some process and not acknowledged yet.', 'role', 'consumer'),
    stored: gauge('dsec_commands_stored', 'Commands in the work queue as a whole.', 'role'),
    // requests
    apiRequests: counter('dsec_api_requests_total', 'Requests answered, by verb and code; OK is success.', 'role', 'verb', 'code'),
    apiSeconds: seconds('dsec_api_request_seconds', 'Time to answer a request.', 'role', 'verb'),
    ops: counter('dsec_ops_total', 'Operations on sandboxes answered, by name and code; OK is success.', 'op', 'code'),
    opSeconds: seconds('dsec_op_seconds', 'Time to answer an operation; long polls wait for what they ask about.', 'op'),
    // decisions and what follows them
    decisions: counter('dsec_decisions_total', 'Commands decided by actors.', 'role', 'kind', 'command', 'outcome', 'code'),
    decisionSeconds: seconds('dsec_decision_seconds', 'From a command given to an actor until its decision is durable.', 'role', 'kind'),
    effects: counter('dsec_effects_total', 'Effects run, by outcome; FAILED ones are tried again.', 'role', 'effect', 'code'),
    effectSeconds: seconds('dsec_effect_seconds', 'Duration of effects that ended well. ensureAttached lasts as long as its sandbox.', 'role', 'effect'),
    events: counter('dsec_events_total', 'Events that this process has committed.', 'role', 'kind', 'event'),
    logLines: counter('dsec_log_lines_total', 'Lines of the structured log.', 'role', 'level'),
    // creates
    createsAccepted: counter('dsec_creates_accepted_total', 'Sandboxes asked for by requests that this placement accepted.'),
    placementAttempts: counter('dsec_placement_attempts_total', 'Sandboxes given a node; again: after a refusal or a loss.', 'attempt'),
    placementRefusals: counter('dsec_placement_refusals_total', 'Refusals by Edges that this placement was told of.', 'code'),
    createsRejected: counter('dsec_creates_rejected_total', 'Sandboxes of accepted requests that got no node.', 'code'),
    sandboxesStarted: counter('dsec_sandboxes_started_total', 'Sandboxes that came to run on this Edge.'),
    sandboxesFailed: counter('dsec_sandboxes_failed_total', 'Sandboxes of this Edge that ended by a failure.', 'code', 'fault'),
    givenBack: counter('dsec_paused_memory_given_back_bytes_total', 'Memory that pausing sandboxes gave back.'),
    // roles
    ready: gauge('dsec_ready', 'Whether /readyz answers 200.'),
    projectionLag: gauge('dsec_projection_lag_commits', 'Commits of a shard that the projection has not folded yet.', 'shard'),
    edgeUsed: gauge('dsec_edge_used', 'What admitted sandboxes have reserved on this node.', 'edge', 'resource', 'unit'),
    edgeCapacity: gauge('dsec_edge_capacity', 'What this node offers to sandboxes.', 'edge', 'resource', 'unit'),
    edgeSandboxes: gauge('dsec_edge_sandboxes', 'Sandboxes of this node that are not over, by status.', 'edge', 'status'),
    edgeAccepting: gauge('dsec_edge_accepting', 'Whether this node takes new sandboxes.', 'edge'),
    edgeFenced: gauge('dsec_edge_fenced', 'Whether this node cannot renew its lease and has frozen its sandboxes.', 'edge'),
    edgeRefusals: counter('dsec_edge_refusals_total', 'Creates that admission refused.', 'code'),
    launcherWaiting: gauge('dsec_launcher_requests_waiting', 'Requests that the launcher has not answered yet.', 'edge'),
    watchedEdges: gauge('dsec_watched_edges', 'Nodes as this watcher judges them.', 'health'),
    heldActors: gauge('dsec_jobs_actors_held', 'Jobs and rollouts whose work this instance does.', 'kind'),
  };
};

/** Lets at most so many values of a label through: names may come from strangers. */
export class LabelValues {
  readonly #known = new Set<string>();

  bounded(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= OPS_LIMITS.labelValues) return 'other';
    this.#known.add(value);
    return value;
  }
}
