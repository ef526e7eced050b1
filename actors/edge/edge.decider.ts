/**
 * Decides who owns a node's name, and for how long: the lease of an Edge and the generation that fences its predecessors.
 *
 * INV-FENCE: the generation only ever rises, and at most one process holds the newest. INV-LOST: a generation is declared
 * lost at most once, and only when nobody renewed the lease that a watcher saw for as long as it lasts. Loss of its sandboxes
 * follows from this one event (`bus-schemas/edge/loss.ts`); it is never committed for each of them. INV-RETURN: what anybody took
 * back while a node was lost lies below its fence before it admits anything again. Does not decide when to look:
 * watchers do (`actors/watcher`), and any number of them may declare the same loss.
 * @paper §3.2 §3.3
 */
import { wireError } from '#bus/errors.ts';
import type { EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import { EdgeName } from '#bus/ids.ts';
import { addMs, type DurationMs } from '#bus/units.ts';
import { accept, type Decision, type DecisionContext, ignore, reject } from '../kernel/definition.ts';
import { EDGE_ACTOR_LIMITS } from './limits.ts';

type EdgeDecision = Decision<EdgeEvent>;
type Of<T extends EdgeCommand['type']> = Extract<EdgeCommand, { type: T }>;

export const decideEdge = (state: EdgeState | null, command: EdgeCommand, context: DecisionContext): EdgeDecision => {
  switch (command.type) {
    case 'RegisterEdge':
      return register(state, command, context);
    case 'FenceQueue':
      return fenceQueue(state, command, context);
    case 'RenewLease':
      return renew(state, command, context);
    case 'DeclareLost':
      return declareLost(state, command, context);
    case 'RetireEdge':
      return retire(state, command, context);
    case 'CordonEdge':
      return cordon(state, command, context);
    case 'UncordonEdge':
      return uncordon(state, context);
  }
};

/** Whoever registers last owns the name: the process before it is dead, or is fenced by the new generation. */
const register = (
  state: EdgeState | null,
  { instance, capacity, backends, leaseMs, queueSequence }: Of<'RegisterEdge'>,
  { address, at }: DecisionContext,
): EdgeDecision => {
  const name = EdgeName.safeParse(address.id);
  if (!name.success) return reject(wireError('INVALID_ARGUMENT', `${address.id} is not an edge name; use lower-case letters, digits, "-" and "_"`));
  const refused = refusedLease(leaseMs);
  if (refused) return refused;
  if (state?.status === 'active' && state.instance === instance) return ignore('this process is registered already');
  const generation = (state?.generation ?? 0) + 1;
  const leaseUntil = addMs(at, leaseMs);
  const fencing = state?.status === 'lost' || (state?.fencing ?? false);
  return accept({ type: 'EdgeRegistered', at, name: name.data, generation, instance, capacity, backends, leaseMs, leaseUntil, queueSequence, fencing });
};

/** Everybody who reads the node as lost has read its queue before: what is there once it is registered covers what they took back. */
const fenceQueue = (state: EdgeState | null, { generation, instance, queueSequence }: Of<'FenceQueue'>, { address, at }: DecisionContext): EdgeDecision => {
  if (!isHeldBy(state, generation, instance)) return fenced(state, address.id, generation);
  return state.fencing ? accept({ type: 'QueueFenced', at, queueSequence }) : ignore('its queue is fenced');
};

const isHeldBy = (state: EdgeState | null, generation: number, instance: string): state is EdgeState =>
  state?.status === 'active' && state.generation === generation && state.instance === instance;

const renew = (state: EdgeState | null, { generation, instance, leaseMs }: Of<'RenewLease'>, { address, at }: DecisionContext): EdgeDecision => {
  if (!isHeldBy(state, generation, instance)) return fenced(state, address.id, generation);
  const refused = refusedLease(leaseMs);
  if (refused) return refused;
  const leaseUntil = addMs(at, leaseMs);
  return leaseUntil > state.leaseUntil ? accept({ type: 'LeaseRenewed', at, leaseMs, leaseUntil }) : ignore('the lease already lasts as long');
};

/** The lease's own end is data to recognise it by; how long it stood still is the watcher's measurement. */
const declareLost = (state: EdgeState | null, { generation, leaseUntil, silentMs, reason }: Of<'DeclareLost'>, { at }: DecisionContext): EdgeDecision => {
  if (!state) return ignore('no such edge');
  if (state.status !== 'active') return ignore(`already ${state.status}`);
  if (state.generation !== generation) return ignore(`generation ${generation} is not the newest, ${state.generation} is`);
  if (state.leaseUntil !== leaseUntil) return ignore('it has renewed its lease since');
  return silentMs > state.leaseMs ? accept({ type: 'EdgeLost', at, generation, reason }) : ignore('it still holds its lease');
};

const retire = (state: EdgeState | null, { generation }: Of<'RetireEdge'>, { address, at }: DecisionContext): EdgeDecision => {
  if (!state || state.generation !== generation) return fenced(state, address.id, generation);
  return state.status === 'retired' ? ignore('already retired') : accept({ type: 'EdgeRetired', at });
};

const cordon = (state: EdgeState | null, { reason }: Of<'CordonEdge'>, { address, at }: DecisionContext): EdgeDecision => {
  if (!state) return unknown(address.id);
  return state.cordoned === null ? accept({ type: 'EdgeCordoned', at, reason }) : ignore(`already cordoned: ${state.cordoned}`);
};

const uncordon = (state: EdgeState | null, { address, at }: DecisionContext): EdgeDecision => {
  if (!state) return unknown(address.id);
  return state.cordoned === null ? ignore('not cordoned') : accept({ type: 'EdgeUncordoned', at });
};

const unknown = (name: string): EdgeDecision =>
  reject(wireError('NODE_NOT_FOUND', `there is no node ${name}; dsec node ls lists those that have ever registered`));

const fenced = (state: EdgeState | null, name: string, generation: number): EdgeDecision => {
  const now = state ? `generation ${state.generation} is the newest and it is ${state.status}` : 'it was never registered';
  const details = { asked: generation, generation: state?.generation ?? 0, status: state?.status ?? null };
  return reject(wireError('EDGE_FENCED', `edge ${name}, generation ${generation}, holds no lease: ${now}; stop its work and register again`, { details }));
};

const refusedLease = (leaseMs: DurationMs): EdgeDecision | undefined => {
  const { leaseMsMin, leaseMsMax } = EDGE_ACTOR_LIMITS;
  if (leaseMs >= leaseMsMin && leaseMs <= leaseMsMax) return undefined;
  return reject(
    wireError('LIMIT_OUT_OF_RANGE', `a lease of ${leaseMs} ms is not between ${leaseMsMin} and ${leaseMsMax} ms`, {
      details: { leaseMs, leaseMsMin, leaseMsMax },
    }),
  );
};
