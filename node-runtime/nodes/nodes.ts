/**
 * What an operator does with nodes: look, cordon, drain. A cordon is a commit of the Edge's actor, so it holds over restarts and
 * while the Edge is away; the Edge learns it from its own log. @paper §3.2
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Beat, type EdgeCommand, type EdgeEvent, type EdgeState } from '#bus/edge/schema.ts';
import { isLostWith } from '#bus/edge/loss.ts';
import { type CommandEnvelope, encode } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type EdgeName, messageIdOf, type Shard } from '#bus/ids.ts';
import { readState } from '#bus/records.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { BEAT_FILTER, edgeAddress, edgeCommandSubject, SYSTEM_PROJECT, SYSTEM_SHARD } from '#bus/subjects.ts';
import { edgeDefinition } from '#actors/edge/edge.definition.ts';
import { type Clock, systemClock } from '#actors/ports/clock.ts';
import { type Condition, judgeBeat } from '#actors/watcher/health.ts';
import { createLog } from '../log/log.ts';
import { ActorDriver } from '../roles/driver/driver.ts';
import { Semaphore } from '../roles/semaphore.ts';
import { NODES_LIMITS } from './limits.ts';
import type { Operator } from './operator.ts';

export type NodeView = {
  readonly name: EdgeName;
  readonly status: EdgeState['status'];
  readonly generation: number;
  readonly cordoned: string | null;
  /** What speaks against it; `silent` when it was not heard. */
  readonly conditions: readonly Condition[];
  readonly sandboxes: number | null;
  readonly sandboxesMax: number;
  readonly memoryMiB: number | null;
  readonly memoryMiBMax: number;
  readonly lostReason: string | null;
};

/** Every node that has ever registered and was not retired, in the order of names. */
export const listNodes = async ({ connection, jetStream }: Operator, clock: Clock = systemClock): Promise<NodeView[]> => {
  const beats = new Map<EdgeName, Beat>();
  const subscription = connection.subscribe(BEAT_FILTER, {
    callback: (error, message) => {
      const beat = error ? undefined : Beat.safeParse(message.json());
      if (beat?.success) beats.set(beat.data.edge, beat.data);
    },
  });
  await delay(NODES_LIMITS.listenMs);
  subscription.unsubscribe();
  const stored = await jetStream.eventLog.lastOfEach({ shard: SYSTEM_SHARD, project: SYSTEM_PROJECT, kind: 'edge', home: '_' });
  return stored
    .map(({ commit }) => readState('edge', commit.state, commit.schema))
    .filter(({ status }) => status !== 'retired')
    .map((state) => viewOf(state, beats.get(state.name), clock))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
};

const viewOf = (state: EdgeState, beat: Beat | undefined, clock: Clock): NodeView => ({
  name: state.name,
  status: state.status,
  generation: state.generation,
  cordoned: state.cordoned,
  conditions: beat ? judgeBeat(undefined, beat, 0, clock.now()).conditions : ['silent'],
  sandboxes: beat?.used.sandboxes ?? null,
  sandboxesMax: state.capacity.sandboxes,
  memoryMiB: beat?.used.memoryMiB ?? null,
  memoryMiBMax: state.capacity.memoryMiB,
  lostReason: state.lostReason,
});

export type Cordoning = 'done' | 'as before';

export const cordonNode = (operator: Operator, edge: EdgeName, reason: string): Promise<Cordoning> => decide(operator, edge, { type: 'CordonEdge', reason });
export const uncordonNode = (operator: Operator, edge: EdgeName): Promise<Cordoning> => decide(operator, edge, { type: 'UncordonEdge' });

const decide = async ({ jetStream }: Operator, edge: EdgeName, command: EdgeCommand, clock: Clock = systemClock): Promise<Cordoning> => {
  const driver = new ActorDriver<EdgeState, EdgeCommand, EdgeEvent, never>({
    definition: edgeDefinition,
    eventLog: jetStream.eventLog,
    clock,
    log: createLog('operator', 'error'),
    armDeadlines: false,
    runEffect: () => Promise.resolve(null),
    deadlineCommand: () => {
      throw new Error('an operator serves no deadlines');
    },
  });
  try {
    const at = clock.now();
    const commandId = `${SYSTEM_PROJECT}:${edge}:operator:${command.type}:${at}`;
    const result = await driver.submit(edgeAddress(edge), command, { commandId, correlationId: commandId, principal: 'operator', at });
    if (!result.ok) throw new DsecError(result.error);
    return result.decision === 'accepted' ? 'done' : 'as before';
  } finally {
    driver.close();
  }
};

export type DrainOptions = {
  readonly edge: EdgeName;
  readonly shards: readonly Shard[];
  readonly reason: string;
  /** After this the sandboxes that are left are stopped; null waits for their own ends. */
  readonly stopAfterMs: number | null;
  readonly signal: AbortSignal;
  readonly onProgress: (left: number, stopping: boolean) => void;
};

/** Cordons, then waits until no sandbox is left. CANCELLED leaves the node cordoned. */
export const drainNode = async (operator: Operator, o: DrainOptions, clock: Clock = systemClock): Promise<void> => {
  await cordonNode(operator, o.edge, o.reason);
  const startedAt = clock.monotonicMs();
  const asked = new Set<string>();
  for (;;) {
    const left = await livingOn(operator, o.edge, o.shards);
    const stopping = o.stopAfterMs !== null && clock.monotonicMs() - startedAt >= o.stopAfterMs;
    o.onProgress(left.length, stopping);
    if (left.length === 0) return;
    if (stopping)
      await stopAll(
        operator,
        o.edge,
        left.filter(({ id }) => !asked.has(id)),
        clock,
      );
    if (stopping) for (const { id } of left) asked.add(id);
    await delay(NODES_LIMITS.drainPollMs, undefined, { signal: o.signal }).catch(() => {
      throw DsecError.of('CANCELLED', `${left.length} sandboxes are left on ${o.edge}, which stays cordoned; dsec node uncordon ${o.edge} takes it back`);
    });
  }
};

const livingOn = async ({ jetStream }: Operator, edge: EdgeName, shards: readonly Shard[]): Promise<SandboxState[]> => {
  const own = await jetStream.eventLog.last(edgeAddress(edge));
  const loss = own ? readState('edge', own.commit.state, own.commit.schema) : undefined;
  const found = (await Promise.all(shards.map((shard) => jetStream.eventLog.lastOfEach({ shard, kind: 'sandbox', home: edge })))).flat();
  return found.map(({ commit }) => commit.state as unknown as SandboxState).filter((state) => !ENDED_STATUSES.has(state.status) && !isLostWith(state, loss));
};

/** Stop is a goal, so it may be sent again; the message id keeps a repetition of one drain from being stored twice. */
const stopAll = async ({ jetStream }: Operator, edge: EdgeName, sandboxes: readonly SandboxState[], clock: Clock): Promise<void> => {
  const slots = new Semaphore(NODES_LIMITS.stopsInFlight);
  await Promise.all(
    sandboxes.map(({ id, project }) =>
      slots.run(async () => {
        const commandId = messageIdOf(project, id, 'drain', clock.now());
        const data = { type: 'StopSandbox', reason: 'edge_shutdown' } as const;
        const envelope: CommandEnvelope = { v: 1, id: commandId, at: clock.now(), project, principal: 'operator', correlationId: commandId, data };
        const outcome = await jetStream.commandQueue.enqueue(edgeCommandSubject(edge, id), commandId, encode('StopSandbox', envelope));
        if (outcome.outcome !== 'applied') throw new DsecError(outcome.error);
      }),
    ),
  );
};
