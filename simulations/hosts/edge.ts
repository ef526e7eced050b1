/**
 * One Edge process, as `node-runtime/roles/edge` puts it together: register → rehydrate → reconcile with what the node has →
 * only then take commands and beat. Admission, decisions, losses and retry rules are the production code.
 */
import { isLostWith, sandboxLostError } from '#bus/edge/loss.ts';
import type { Beat, Capacity, EdgeState } from '#bus/edge/schema.ts';
import { toWireError, type WireError, wireError } from '#bus/errors.ts';
import type { EdgeName, LayerDigest, Shard } from '#bus/ids.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxEvent } from '#bus/sandbox/events.ts';
import { NO_FACTS } from '#bus/sandbox/snapshot.ts';
import { type DeadlineKind, ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { type ActorAddress, edgeAddress } from '#bus/subjects.ts';
import type { Admission } from '#actors/edge/admission.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import { isFinalFailure } from '#actors/sandbox/sandbox.failures.ts';
import type { SandboxEffect } from '#actors/sandbox/sandbox.effects.ts';
import type { Done, Machine } from '../ports/machine.ts';
import type { NodeLayers } from '../ports/node-layers.ts';
import { ActorRunner, type UnderWay } from './actor-runner.ts';
import { consumeEdgeCommands } from './edge-commands.ts';
import { type EdgeActorRunner, SimLease } from './lease.ts';
import { startForgetting } from './forgetting.ts';
import { lookAtJob } from './job-looks.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Observer } from './observer.ts';
import { Settlements } from './packed-creates.ts';
import type { Parts } from './parts.ts';
import type { Process } from './process.ts';

type Ended = { readonly address: ActorAddress; readonly atMs: number };
export type SandboxRunner = ActorRunner<SandboxState, SandboxCommand, SandboxEvent, SandboxEffect>;
export type EdgeOptions = {
  readonly edge: EdgeName;
  readonly process: Process;
  readonly machine: Machine;
  readonly layers: NodeLayers;
  readonly capacity: Capacity;
  readonly shards: readonly Shard[];
  readonly laneCount: number;
  readonly parts: Parts;
  readonly observer: Observer;
  /** A layer that this node cannot get just now. */
  readonly missingLayer: () => string | null;
  /** It has ended by itself: fenced for good, or its start failed. A supervisor starts another. */
  readonly onOver: (why: WireError) => void;
};

export class SimEdge {
  readonly admission: Admission;
  readonly runner: SandboxRunner;
  readonly lease: SimLease;
  readonly #o: EdgeOptions;
  /** Held until nobody asks for their logs any more, in the order in which they ended. */
  readonly #ended: Ended[] = [];
  #evicted = 0;
  #beats = 0;
  #admittedThrough = 0;
  readonly #settlements = new Settlements();
  draining = false;
  /** Reconciled, and taking commands. */
  ready = false;

  constructor(options: EdgeOptions) {
    this.#o = options;
    const { parts, process, edge, capacity } = options;
    this.admission = parts.admission(capacity);
    const edgeRunner: EdgeActorRunner = new ActorRunner({
      process,
      definition: parts.edge,
      host: parts.host(parts.edge),
      onReply: (address, result) => options.observer.replied(address, result),
    });
    this.lease = new SimLease(process, edgeRunner, edge, capacity, {
      fenced: () => options.machine.freezeAll(true),
      renewed: () => this.#thaw(),
      over: (error) => this.#over(error),
    });
    this.runner = new ActorRunner({
      process,
      definition: parts.sandbox,
      host: parts.host(parts.sandbox),
      runEffect: (effect, under) => this.#runGuarded(effect, under),
      deadlineCommand: ({ kind, version }) => ({ type: 'DeadlinePassed', kind: kind as DeadlineKind, version, activityAt: NEVER }),
      onAdopted: (state, stored) => this.#adopted(state, stored),
      onReply: (address, result) => options.observer.replied(address, result),
    });
  }

  get accepting(): boolean {
    return !this.draining && !this.lease.fenced && (this.lease.state?.cordoned ?? null) === null;
  }
  get liveCount(): number {
    return this.admission.used().sandboxes;
  }

  start(): void {
    const { machine } = this.#o;
    this.lease.acquire((error) => {
      if (error) return this.#over(error);
      if (!machine.adoptEpoch(this.lease.generation)) return this.#over(wireError('EDGE_FENCED', 'the launcher obeys a newer epoch'));
      machine.forgetWatchers();
      machine.freezeAll(false);
      this.#followSelf();
      this.#rehydrate([...this.#o.shards], []);
    });
  }

  kill(): void {
    this.#o.process.kill();
    this.runner.close();
  }

  #over(why: WireError): void {
    if (!this.#o.process.alive) return;
    this.kill();
    this.#o.onOver(why);
  }

  #followSelf(): void {
    const { process, edge } = this.#o;
    process.bus.subscribe<{ commit: { commandId: string } }>(`out.edge.${edge}`, process.link, ({ commit }) => {
      if (!this.lease.isOwn(commit.commandId)) this.lease.check();
    });
  }

  #rehydrate(left: Shard[], found: StoredCommit[]): void {
    const shard = left.shift();
    if (shard === undefined) return this.#reconcile(found);
    this.#o.process.log.lastOfEach({ shard, kind: 'sandbox', home: this.#o.edge }, (answer) => {
      if (!answer.ok) return this.#over(answer.error);
      this.#rehydrate(left, [...found, ...answer.value]);
    });
  }

  #reconcile(found: readonly StoredCommit[]): void {
    const { machine, parts, process } = this.#o;
    const desired = found.filter(({ commit }) => !ENDED_STATUSES.has((commit.state as unknown as SandboxState).status));
    try {
      for (const { commit } of desired) {
        const state = parts.sandbox.parseState(commit.state, commit.schema);
        this.admission.restore(state.id, state.spec, state.slot, state.project);
      }
    } catch (thrown) {
      return this.#over(toWireError(thrown)); // written by a newer program: this one must not touch it
    }
    for (const stored of desired) this.runner.adopt(stored);
    const loss = this.lease.state;
    for (const { address, commit } of desired)
      if (loss && isLostWith(commit.state as unknown as SandboxState, loss)) {
        const commandId = `${commit.actorId}:lost:${loss.lostGeneration}`;
        const meta = { commandId, correlationId: commandId, principal: 'platform', at: process.clock.now() };
        this.runner.submit(address, { type: 'ReportLost', error: sandboxLostError(commit.actorId, loss) }, meta, () => {});
      }
    const known = new Set<string>(desired.map(({ address }) => address.id));
    const unknown = machine.present().filter((id) => !known.has(id));
    let left = unknown.length;
    if (left === 0) this.#open();
    for (const id of unknown)
      machine.destroy(this.lease.generation, id, () => {
        left -= 1;
        if (left === 0 && process.alive) this.#open();
      });
  }

  #open(): void {
    const { process } = this.#o;
    const { admission, runner, lease } = this;
    const onAdmitted = (sequence: number) => {
      this.#admittedThrough = Math.max(this.#admittedThrough, sequence);
    };
    const parts = { admission, runner, lease, settlements: this.#settlements, accepting: () => this.accepting, onAdmitted };
    consumeEdgeCommands({ ...this.#o, ...parts }, (error) => {
      if (error) return this.#over(error);
      this.ready = true;
      this.#beat();
      process.every(HOST_LIMITS.beatMs, 'beat', () => this.#beat());
      startForgetting(process, this.#o.edge, this.#o.shards);
    });
  }

  #evictEnded(): void {
    const nowMs = this.#o.process.clock.monotonicMs();
    for (let next = this.#ended[this.#evicted]; next && next.atMs + HOST_LIMITS.logRetentionMs <= nowMs; next = this.#ended[this.#evicted]) {
      this.runner.evict(next.address);
      this.#evicted += 1;
    }
    if (this.#evicted * 2 < this.#ended.length) return;
    this.#ended.splice(0, this.#evicted);
    this.#evicted = 0;
  }

  #beat(): void {
    const { process, edge, capacity } = this.#o;
    this.#beats += 1;
    this.#evictEnded();
    const beat: Beat = {
      v: 1,
      edge,
      generation: this.lease.generation,
      at: process.clock.now(),
      backends: ['container'],
      capacity,
      used: this.admission.used(),
      accepting: this.accepting,
      running: {},
      sequence: this.#beats,
      cordoned: this.lease.state?.cordoned ?? null,
      probes: null,
      labels: {},
      layers: this.#o.layers.ready(),
      reservedFor: null,
      admittedThrough: this.#admittedThrough,
      simulated: true,
    };
    process.bus.publish(process.link, 'beat', beat);
  }

  #thaw(): void {
    for (const id of this.#o.machine.present()) {
      const status = this.runner.stateOf(id)?.status;
      if (status !== undefined && status !== 'paused') this.#o.machine.setFrozen(id, false);
    }
  }

  #adopted(state: SandboxState, stored: StoredCommit): void {
    this.#settlements.adopted(state);
    if (!ENDED_STATUSES.has(state.status)) return;
    const before = this.liveCount;
    this.admission.release(state.id);
    if (this.liveCount < before) this.#ended.push({ address: stored.address, atMs: this.#o.process.clock.monotonicMs() });
  }

  /** What a lost sandbox still called for is not done any more, and nothing is brought to life behind the lease's back. */
  #runGuarded(effect: SandboxEffect, under: SandboxUnderWay): void {
    const loss: EdgeState | undefined = this.lease.state;
    if (effect.type !== 'ensureDestroyed' && loss && isLostWith(under.state, loss)) return under.finish(SAID_NOTHING);
    if (effect.type === 'ensureLaunched' && this.lease.fenced)
      return under.finish({ ok: false, error: wireError('EDGE_FENCED', 'launched when the lease is renewed') });
    if (effect.type === 'ensureAttached') return this.#attach(effect, under);
    this.#runEffect(effect, under);
  }

  /** Apart from the others: what it leaves behind stays for as long as the sandbox lives. */
  #attach({ id, frozen }: Extract<SandboxEffect, { type: 'ensureAttached' }>, under: SandboxUnderWay): void {
    const { machine } = this.#o;
    if (frozen !== null) machine.setFrozen(id, frozen || this.lease.fenced);
    const gone = machine.watch(id, under, exitOf);
    if (gone) exitOf(under, gone);
  }

  #runEffect(effect: SandboxEffect, under: SandboxUnderWay): void {
    const { machine } = this.#o;
    const { generation } = this.lease;
    const { state } = under;
    const finalOr =
      <T>(failed: 'ReportFailed' | 'ReportTransitionFailed', done: (value: T) => SandboxCommand): Done<T> =>
      (result) => {
        if (result.ok) under.finish({ ok: true, report: done(result.value) });
        else under.finish(isFinalFailure(result.error) ? { ok: true, report: { type: failed, error: result.error } } : result);
      };
    const transition = (report: SandboxCommand) => finalOr<null>('ReportTransitionFailed', () => report);
    const launched = finalOr<{ pid: number }>('ReportFailed', ({ pid }) => ({ type: 'ReportStarted', pid }));
    switch (effect.type) {
      case 'ensurePrepared':
        return this.#o.layers.prepare(
          effect.layers,
          finalOr<null>('ReportFailed', () => ({ type: 'ReportPrepared' })),
        );
      case 'ensureLaunched':
        return lookAtJob(this.#o.process, state.project, state.spec, (job) => {
          if (!job.ok) under.finish(job);
          else if (job.value) launched({ ok: false, error: job.value });
          else machine.launch(generation, state, launched);
        });
      case 'ensurePaused':
        return machine.pause(generation, state.id, transition({ type: 'ReportPaused' }));
      case 'ensureResumed':
        return machine.resume(generation, state.id, transition({ type: 'ReportResumed' }));
      case 'ensureSnapshot':
        return machine.snapshot(generation, state.id, transition({ type: 'ReportSnapshotted', layer: layerOf(effect.snapshotId), facts: NO_FACTS }));
      case 'ensureDestroyed':
        return machine.destroy(generation, state.id, (result) => under.finish(result.ok ? { ok: true, report: { type: 'ReportDestroyed' } } : result));
      default:
        return under.finish(SAID_NOTHING);
    }
  }
}

/** Nobody runs commands in a simulated sandbox: looking is not simulated. */
const NEVER = 0 as SandboxState['createdAt'];
type SandboxUnderWay = UnderWay<SandboxState, SandboxCommand>;
const SAID_NOTHING = { ok: true, report: null } as const;
const exitOf = (under: SandboxUnderWay, error: WireError): void => under.finish({ ok: true, report: { type: 'ReportExited', error } });

const layerOf = (snapshotId: string): LayerDigest => `sha256:${Buffer.from(snapshotId).toString('hex').padEnd(64, '0').slice(0, 64)}` as LayerDigest;

/** The address of the Edge's own actor, for whoever looks at it from outside. */
export const edgeActorOf = edgeAddress;
