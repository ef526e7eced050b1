/**
 * The sandbox actors of one Edge: driven from the log, reconciled with the kernel at start, ended together at the end.
 *
 * INV-OWN: what lives on the node is what the log says lives there. Both ways: a sandbox of the log is taken up (its pending
 * effects make it so), one that no log knows is ended.
 */
import { isLostWith, type Loss, sandboxLostError } from '#bus/edge/loss.ts';
import { DsecError } from '#bus/errors.ts';
import type { SandboxId, Shard } from '#bus/ids.ts';
import { SandboxEvent } from '#bus/sandbox/events.ts';
import { type DeadlineKind, ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { sandboxAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { Deadline } from '#actors/kernel/definition.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import type { SandboxEffect } from '#actors/sandbox/sandbox.effects.ts';
import { sandboxDefinition } from '#actors/sandbox/sandbox.definition.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';
import { JobLooks } from '../job-looks.ts';
import type { Admission } from '#actors/edge/admission.ts';
import { Changes } from './changes.ts';
import type { SandboxDriver } from './commands.ts';
import { sandboxEffectRunner } from './effects.ts';
import { EDGE_LIMITS } from './limits.ts';
import type { Node } from './node.ts';
import type { Settlements } from './settlements.ts';

export type SandboxesOptions = {
  readonly edge: EdgeName;
  readonly shards: readonly Shard[];
  readonly generation: number;
  readonly eventLog: EventLog;
  readonly admission: Admission;
  readonly node: Pick<Node, 'backend' | 'images'>;
  /** The loss of earlier generations of this node, as its actor remembers it. */
  readonly loss: Loss;
  /** While true nothing is brought to life: the lease is not renewed. */
  readonly fenced: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly settlements: Settlements;
};

export class Sandboxes {
  readonly driver: SandboxDriver;
  readonly changes = new Changes();
  readonly #o: SandboxesOptions;
  readonly #live = new Map<SandboxId, SandboxState>();
  #onEmpty = () => {};

  constructor(options: SandboxesOptions) {
    this.#o = options;
    this.driver = new ActorDriver({
      definition: sandboxDefinition,
      eventLog: options.eventLog,
      clock: options.clock,
      log: options.log,
      runEffect: this.#guarded(sandboxEffectRunner(options.node.backend, new JobLooks(options.eventLog))),
      deadlineCommand: (deadline, state) => ({
        type: 'DeadlinePassed',
        kind: deadline.kind as DeadlineKind,
        version: deadline.version,
        activityAt: this.#activityAt(state),
      }),
      dueAt: (deadline, state) => this.#dueAt(deadline, state),
      onAdopted: (state, stored) => this.#adopted(state, stored),
    });
  }

  get liveCount(): number {
    return this.#live.size;
  }

  /** Of those that are not over. */
  countByStatus(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { status } of this.#live.values()) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  isLive(id: string): boolean {
    return this.#live.has(id as SandboxId);
  }

  /** Takes up every sandbox from its last commit, never from its history, and ends what only the kernel knows. */
  async rehydrate(): Promise<void> {
    const { edge, shards, eventLog, admission, node, log } = this.#o;
    const startedAt = performance.now();
    const found = (await Promise.all(shards.map((shard) => eventLog.lastOfEach({ shard, kind: 'sandbox', home: edge })))).flat();
    const desired = found.filter(({ commit }) => !ENDED_STATUSES.has((commit.state as unknown as SandboxState).status));
    for (const stored of desired) assertKnown(stored);
    for (const { commit } of desired) {
      const state = sandboxDefinition.parseState(commit.state, commit.schema);
      admission.restore(state.id, state.spec, state.slot, state.project);
      node.images.restore(state.id, state.spec.layers);
    }
    const present = await node.backend.present();
    for (const stored of desired) this.driver.adopt(stored);
    const lost = desired.filter(({ commit }) => isLostWith(commit.state as unknown as SandboxState, this.#o.loss));
    for (const stored of lost) this.#endLost(stored);
    const known = new Set<string>(desired.map((stored) => stored.address.id));
    const unknown = present.filter((id) => !known.has(id));
    await Promise.all(unknown.map((id) => node.backend.destroyUnknown(id)));
    const durationMs = Math.round(performance.now() - startedAt);
    log.info('edge.rehydrated', { sandboxes: desired.length, lost: lost.length, present: present.length, orphansEnded: unknown.length, durationMs });
  }

  /** Stops every sandbox and resolves when the last one has ended. */
  async endAll(): Promise<void> {
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#live.size === 0) resolve();
    });
    for (const { id, project } of this.#live.values()) {
      const commandId = `${id}:edge_shutdown:${this.#o.generation}`;
      const meta = { commandId, correlationId: commandId, principal: 'platform', at: this.#o.clock.now() };
      void this.driver.submit(sandboxAddress(project, id), { type: 'StopSandbox', reason: 'edge_shutdown' }, meta);
    }
    await empty;
  }

  /** Others count it as lost since its Edge was declared lost: it ends, and its record says so. */
  #endLost({ address, commit }: StoredCommit): void {
    const { loss, clock } = this.#o;
    const commandId = `${commit.actorId}:lost:${loss.lostGeneration}`;
    const meta = { commandId, correlationId: commandId, principal: 'platform', at: clock.now() };
    void this.driver.submit(address, { type: 'ReportLost', error: sandboxLostError(commit.actorId, loss) }, meta);
  }

  /** What a lost sandbox still called for is not done any more, and nothing is brought to life behind the lease's back. */
  #guarded(run: ReturnType<typeof sandboxEffectRunner>): typeof run {
    return (effect, context) => {
      const { state } = context;
      if (effect.type !== 'ensureDestroyed' && isLostWith(state, this.#o.loss)) return Promise.resolve(null);
      if (MAKES_RUN.has(effect.type) && this.#o.fenced())
        return Promise.reject(DsecError.of('EDGE_FENCED', `node ${this.#o.edge} cannot renew its lease; ${state.id} runs when it can`));
      return run(effect, context);
    };
  }

  #adopted(state: SandboxState, stored: StoredCommit): void {
    const { admission, log, node, settlements } = this.#o;
    settlements.adopted(state);
    log.debug('sandbox.committed', { actorId: state.id, version: stored.commit.version, status: state.status, commandId: stored.commit.commandId });
    if (!ENDED_STATUSES.has(state.status)) {
      this.#live.set(state.id, state);
      node.backend.follow(state);
      this.changes.notify(state.id);
      return;
    }
    this.changes.notify(state.id);
    if (!this.#live.delete(state.id)) return;
    admission.release(state.id);
    if (this.#live.size === 0) this.#onEmpty();
    setTimeout(() => this.driver.evict(stored.address), EDGE_LIMITS.logRetentionMs).unref();
  }

  #activityAt({ id }: SandboxState): TimestampMs {
    return this.#o.node.backend.activityAt(id) as TimestampMs;
  }

  /** Activity moves the idle deadline without a commit; whoever looks at a sandbox never shortens its life. */
  #dueAt(deadline: Deadline, state: SandboxState): number {
    const { idleMs, idlePauseMs } = state.spec.lives;
    const life = deadline.kind === 'idle' ? idleMs : deadline.kind === 'idlePause' ? idlePauseMs : null;
    return life === null ? deadline.at : Math.max(deadline.at, this.#activityAt(state) + life);
  }
}

const MAKES_RUN: ReadonlySet<SandboxEffect['type']> = new Set(['ensureLaunched', 'ensureResumed']);

const KNOWN_EVENTS: ReadonlySet<string> = new Set(SandboxEvent.options.map((option) => option.shape.type.value));

/**
 * A log that a newer version wrote is not for this one: what it does not understand it would undo. Thrown before anything on the
 * node is touched.
 */
const assertKnown = ({ address: { id }, commit }: StoredCommit): void => {
  const unknown = commit.events.find(({ type }) => !KNOWN_EVENTS.has(type));
  if (commit.schema <= sandboxDefinition.schema && !unknown) return;
  const what = unknown ? `an event ${unknown.type.slice(0, 64)}` : `version ${commit.schema} of its records`;
  throw DsecError.of('UNSUPPORTED_VERSION', `sandbox ${id}: its log holds ${what}, which this program does not know; start the version that wrote it`, {
    details: { actorId: id, version: commit.version, schema: commit.schema },
  });
};
