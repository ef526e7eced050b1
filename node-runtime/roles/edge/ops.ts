/**
 * The data plane of one Edge: answers `dsec.op.*.<edge>.*.*` through the sandbox's Chronus. @paper §3.3
 *
 * Checks the frame and the fields before anything is looked up, and the sandbox's state before Chronus is asked. Every
 * answer is one op frame; every failure is a typed error.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { invalid } from '#bus/envelope.ts';
import { DsecError, toWireError } from '#bus/errors.ts';
import { type EdgeName, ProjectName, SandboxId } from '#bus/ids.ts';
import { packOp, unpackOp } from '#bus/op/codec.ts';
import { isOpName, OPS, type OpName, type OpParsed } from '#bus/op/schema.ts';
import { safeParse } from '#bus/proof.ts';
import type { SandboxState, SandboxStatus, StopReason } from '#bus/sandbox/state.ts';
import { ENDED_STATUSES, EXPIRY_REASONS } from '#bus/sandbox/state.ts';
import { TRACEPARENT_HEADER, traceIdOf } from '#bus/trace-context.ts';
import { type ActorAddress, opFilter, parseOpSubject, sandboxAddress } from '#bus/subjects.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import { SpanKind } from '@opentelemetry/api';
import { traced } from '../../tracing/spans.ts';
import type { Log } from '../../log/log.ts';
import type { MayOperate } from '../authenticate.ts';
import type { SandboxDriver } from './commands.ts';
import { EDGE_LIMITS } from './limits.ts';

/** What answers operations on one sandbox. `body` are the raw bytes behind the meta. */
export type OpHandler = {
  handle<O extends OpName>(op: O, request: OpParsed<O>, body: Uint8Array): Promise<{ readonly data: unknown; readonly body: readonly Uint8Array[] }>;
  /** Whether it is answered from what is recorded, without the inside. */
  isRecorded?<O extends OpName>(op: O, request: OpParsed<O>): boolean;
};

export type OpsOptions = {
  readonly edge: EdgeName;
  readonly connection: NatsConnection;
  readonly driver: SandboxDriver;
  readonly eventLog: EventLog;
  readonly log: Log;
  readonly mayOperate: MayOperate;
  /** False when the lease is not renewed: operations are refused, because another process may own the sandboxes. */
  readonly fenced: () => boolean;
  /** Chronus of a live sandbox; undefined while its channel is being made. */
  readonly live: (id: SandboxId) => Promise<OpHandler | undefined>;
  /** Resumes a paused sandbox, once for all who ask; answers with the state in which it runs, or has begun to end. */
  readonly awake: (address: ActorAddress, id: SandboxId) => Promise<SandboxState>;
  /** Reader of an ended sandbox's logs, while they are kept. */
  readonly ended: (state: SandboxState) => OpHandler | undefined;
};

/** Operations that are answered from what is recorded, and so go on after the sandbox has ended: an `exec` under a known key is one. */
const READS: ReadonlySet<OpName> = new Set(['exec', 'wait', 'read', 'list']);

/** Operations that need nothing of the inside: what a paused sandbox has written is read, waited for and let go of without waking it. */
const LOOKS: ReadonlySet<OpName> = new Set(['wait', 'read', 'list', 'credit', 'resize', 'receive', 'hangup', 'fileClose']);

export const serveOps = (options: OpsOptions): { close(): Promise<void> } => {
  let inFlight = 0;
  const subscription = options.connection.subscribe(opFilter(options.edge), {
    callback: (error, message) => {
      if (error || !message.reply) return;
      if (inFlight >= EDGE_LIMITS.opsInFlight) {
        respond(message, failure(DsecError.of('OVERLOADED', `node ${options.edge} already answers ${EDGE_LIMITS.opsInFlight} operations; try again`)));
        return;
      }
      inFlight += 1;
      void answer(options, message)
        .then((frame) => respond(message, frame))
        .finally(() => {
          inFlight -= 1;
        });
    },
  });
  return {
    close: async () => {
      subscription.unsubscribe();
    },
  };
};

const respond = (message: Msg, frame: Uint8Array): void => {
  message.respond(frame);
};

const failure = (thrown: unknown): Uint8Array => packOp({ ok: false, error: toWireError(thrown) });

/** One canonical line per operation, however it ends. */
const answer = async (options: OpsOptions, message: Msg): Promise<Uint8Array> => {
  const startedAt = performance.now();
  const line = () => {
    const { op = '', sandbox: actorId } = parseOpSubject(message.subject) ?? {};
    const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
    return { op: isOpName(op) ? op : 'unknown', durationMs, actorId, traceId: traceIdOf(message.headers?.get(TRACEPARENT_HEADER)) };
  };
  try {
    const frame = await tracedOp(options, message);
    options.log.debug('op.answered', { ...line(), outcome: 'applied' });
    return frame;
  } catch (thrown) {
    const { code, outcome } = toWireError(thrown);
    options.log.debug('op.refused', { ...line(), code, outcome });
    return failure(thrown);
  }
};

const tracedOp = (options: OpsOptions, message: Msg): Promise<Uint8Array> => {
  const { op = '', sandbox = '' } = parseOpSubject(message.subject) ?? {};
  const span = { parent: message.headers?.get(TRACEPARENT_HEADER) || undefined, kind: SpanKind.SERVER, attributes: { 'dsec.sandbox': sandbox.slice(0, 100) } };
  return traced(`op.${isOpName(op) ? op : 'unknown'}`, span, () => perform(options, message));
};

const perform = async (options: OpsOptions, message: Msg): Promise<Uint8Array> => {
  const { project, id, op } = parseTarget(message.subject);
  const allowed = options.mayOperate(message, project);
  if (allowed) await allowed;
  const { meta, body } = unpackOp(message.data);
  const parsed = safeParse(OPS[op].request, meta);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', op, parsed.error);
  if (options.fenced()) throw DsecError.of('EDGE_FENCED', `node ${options.edge} cannot renew its lease and refuses operations until it can; try again`);
  const handler = await handlerFor(options, project, id, op, parsed.data as OpParsed<typeof op>);
  const { data, body: answered } = await handler.handle(op, parsed.data as OpParsed<typeof op>, body);
  return packOp({ ok: true, data }, ...answered);
};

const parseTarget = (subject: string): { project: ProjectName; id: SandboxId; op: OpName } => {
  const parts = parseOpSubject(subject);
  const project = ProjectName.safeParse(parts?.project);
  const id = SandboxId.safeParse(parts?.sandbox);
  if (!parts || !project.success || !id.success) throw DsecError.of('INVALID_ARGUMENT', 'the subject does not name a project and a sandbox id');
  if (!isOpName(parts.op)) throw DsecError.of('UNKNOWN_VERB', `there is no operation ${parts.op.slice(0, 64)}; known: ${Object.keys(OPS).join(', ')}`);
  return { project: project.data, id: id.data, op: parts.op };
};

const handlerFor = async (options: OpsOptions, project: ProjectName, id: SandboxId, op: OpName, request: OpParsed<OpName>): Promise<OpHandler> => {
  const address = sandboxAddress(project, id);
  if (address.home !== options.edge) throw DsecError.of('SANDBOX_NOT_FOUND', `sandbox ${id} does not live on node ${options.edge}`);
  const found = await settledStateOf(options, address);
  if (!found) throw DsecError.of('SANDBOX_NOT_FOUND', `there is no sandbox ${id} in project ${project}; see dsec ls`);
  const atRest = await handlerAtRest(options, found, op, request);
  if (atRest) return atRest;
  const state = isResting(found) ? await options.awake(address, id) : found;
  if (ENDED_STATUSES.has(state.status) || state.status === 'stopping') {
    const reader = READS.has(op) ? options.ended(state) : undefined;
    if (!reader) throw endedError(state);
    return { handle: (...call) => reader.handle(...call).catch((thrown: unknown) => Promise.reject(isEnd(thrown) ? endedError(state) : thrown)) };
  }
  const live = isOperable(state) ? await options.live(id) : undefined;
  if (!live)
    throw DsecError.of('INVALID_STATE', `sandbox ${id} is ${state.status}, not running yet; try again when it is`, {
      retry: 'later',
      details: { status: state.status },
    });
  return live;
};

/** While a snapshot is taken commands stand still for a moment; what is asked meanwhile waits as they do. */
const isOperable = ({ status, returnTo }: SandboxState): boolean => status === 'running' || (status === 'snapshotting' && returnTo === 'running');
const RESTING: ReadonlySet<SandboxStatus> = new Set(['pausing', 'paused', 'resuming']);
const isResting = (state: SandboxState): boolean => RESTING.has(state.status) || (state.status === 'snapshotting' && state.returnTo === 'paused');

/** What answers about a paused sandbox without waking it. */
const handlerAtRest = async (options: OpsOptions, state: SandboxState, op: OpName, request: OpParsed<OpName>): Promise<OpHandler | undefined> => {
  if (!isResting(state)) return undefined;
  const live = await options.live(state.id);
  return LOOKS.has(op) || live?.isRecorded?.(op, request) ? live : undefined;
};

const isEnd = (thrown: unknown): boolean => thrown instanceof DsecError && thrown.code === 'SANDBOX_ENDED';

const endedError = (state: SandboxState): DsecError => {
  const { id, status, stopReason, failure } = state;
  if (stopReason && EXPIRY_REASONS.has(stopReason)) return expired(state);
  const how = status === 'failed' ? `failed: ${failure?.message ?? 'unknown'}` : `${status} (${stopReason ?? 'requested'})`;
  return DsecError.of('SANDBOX_ENDED', `sandbox ${id} has ${how}; create a new one`, {
    details: { status, reason: stopReason },
    ...(failure ? { fault: failure.fault } : {}),
  });
};

const expired = ({ id, stopReason, spec, livesVersion }: SandboxState): DsecError => {
  const { totalMs, runningMs, idleMs } = spec.lives;
  const over: Partial<Record<StopReason, string>> = {
    total_life: `its total life (${livesVersion > 0 ? 'as extended' : `${totalMs} ms`}) was over`,
    running_life: `it had run for ${runningMs} ms`,
    idle: `it had been idle for ${idleMs} ms`,
  };
  const why = stopReason ? over[stopReason] : undefined;
  return DsecError.of('EXPIRED', `sandbox ${id} has ended: ${why}; create a new one with longer lives, or extend it in time`, {
    outcome: 'not_applied',
    details: { reason: stopReason },
  });
};

/**
 * A client sees the commit that says "running" as soon as the log has it, and its first operation may come in one piece with the
 * log's answer to this Edge: what that answer changes is done by the next turn.
 */
const settledStateOf = async (options: OpsOptions, address: ActorAddress): Promise<SandboxState | undefined> => {
  const state = await stateOf(options, address);
  if (state?.status !== 'starting') return state;
  await nextTurn();
  return stateOf(options, address);
};

const stateOf = async (options: OpsOptions, address: ActorAddress): Promise<SandboxState | undefined> => {
  const held = options.driver.peek(address);
  if (held) return held.state;
  const stored = await options.eventLog.last(address);
  return stored ? (stored.commit.state as unknown as SandboxState) : undefined;
};
