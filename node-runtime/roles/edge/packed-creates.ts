/**
 * Packed creates at the Edge: admits each item or refuses it, and, for chunks of groups, holds it, releases it, and says what is
 * held, runs or failed.
 *
 * A batch is acknowledged when all that is to be said about it is durable: for a followed batch that is when its last sandbox
 * runs or has failed. So a process that dies in between gets it again, finds its sandboxes, and says the rest.
 */
import { type CommandEnvelope, encode, invalid } from '#bus/envelope.ts';
import { DsecError, toWireError, type WireError } from '#bus/errors.ts';
import { safeParse } from '#bus/proof.ts';
import { type CreateOutcome, outcomeOf } from '#bus/sandbox/outcome.ts';
import { LaunchSandboxes, ReleaseSandboxes, type SandboxCommand } from '#bus/sandbox/commands.ts';
import { ENDED_STATUSES } from '#bus/sandbox/state.ts';
import { type ActorAddress, laneOf, reportLaneSubject, sandboxAddress } from '#bus/subjects.ts';
import {
  type BatchNews,
  batchReport,
  createIdOf,
  createOf,
  type LaunchItem,
  NO_NEWS,
  overtookItsCreate,
  refusalOfBatch,
  refusedBefore,
  tombstoneOfRefused,
  unsettledBy,
} from '#actors/edge/launch.ts';
import type { CommandMeta } from '#actors/kernel/host.ts';
import type { Delivery } from '#actors/ports/command-queue.ts';
import type { EdgeCommandsOptions } from './commands.ts';
import { Gathering } from './gathering.ts';
import { EDGE_LIMITS } from './limits.ts';

type Batch = Pick<LaunchSandboxes, 'requestId' | 'items'>;
type Refused = LaunchItem & { readonly error: WireError };
type Taken = { readonly item: LaunchItem; readonly error: WireError | null };

export class PackedCreates {
  readonly #o: EdgeCommandsOptions;
  readonly #delivery: Delivery;
  readonly #envelope: CommandEnvelope;
  readonly #metaOf: (commandId: string) => CommandMeta;

  constructor(options: EdgeCommandsOptions, delivery: Delivery, envelope: CommandEnvelope, metaOf: (commandId: string) => CommandMeta) {
    this.#o = options;
    this.#delivery = delivery;
    this.#envelope = envelope;
    this.#metaOf = metaOf;
  }

  async launch(): Promise<void> {
    const parsed = safeParse(LaunchSandboxes, this.#envelope.data);
    if (!parsed.success) throw invalid('MALFORMED_MESSAGE', 'LaunchSandboxes', parsed.error);
    const batch = parsed.data;
    if (this.#o.missingLayer(batch.spec)) await this.#o.catchUpLayers();
    const refusal = this.#refusalOfBatch(batch);
    const refusing: Promise<Refused | null>[] = [];
    const layersLocal = refusal !== null || this.#o.layersLocal(batch.spec.layers);
    const taking = Promise.all(batch.items.map((item) => this.#admit(batch, item, refusal, refusing, layersLocal)));
    taking.catch(() => {}); // looked at below, after the refusals are told
    this.#o.onAdmitted(this.#delivery.sequence); // what `used` says from here on includes this batch
    await this.#tellRefused(batch, await Promise.all(refusing));
    const known = refusing.length;
    const taken = (await taking).filter((one) => one !== null);
    await this.#tellRefused(batch, await Promise.all(refusing.slice(known)));
    if (batch.follow && batch.heldUntil !== null) await this.#tellHeld(batch, taken);
    else if (batch.follow) await this.#follow(batch, taken);
    this.#delivery.ack();
  }

  async release(): Promise<void> {
    const parsed = safeParse(ReleaseSandboxes, this.#envelope.data);
    if (!parsed.success) throw invalid('MALFORMED_MESSAGE', 'ReleaseSandboxes', parsed.error);
    const batch = parsed.data;
    const results = await Promise.all(
      batch.items.map(async (item): Promise<Taken | 'early'> => {
        const address = sandboxAddress(this.#envelope.project, item.sandboxId);
        const command = this.#decided(batch, address);
        const result = await this.#o.driver.submit(address, command, this.#metaOf(createIdOf(this.#envelope, item)));
        if (overtookItsCreate(command.type, result, this.#delivery.attempt)) return 'early';
        const unsettled = unsettledBy(result);
        if (unsettled) throw new DsecError(unsettled);
        return { item, error: result.ok ? null : result.error };
      }),
    );
    if (results.includes('early')) {
      this.#delivery.retry(EDGE_LIMITS.earlyStopRetryMs);
      return;
    }
    if (batch.decision === 'start') await this.#follow(batch, results as Taken[]);
    this.#delivery.ack();
  }

  #decided({ decision }: ReleaseSandboxes, address: ActorAddress): SandboxCommand {
    if (decision !== 'start') return { type: 'StopSandbox', reason: 'requested' };
    const layers = this.#o.driver.peek(address)?.state.spec.layers;
    return { type: 'StartHeld', layersLocal: layers === undefined || this.#o.layersLocal(layers) };
  }

  #refusalOfBatch({ spec }: LaunchSandboxes): WireError | null {
    const { edge, clock, labels } = this.#o;
    return refusalOfBatch(this.#envelope.deadlineAt, spec, {
      edge,
      now: clock.now(),
      accepting: this.#o.accepting(),
      sentToLost: this.#delivery.sequence <= this.#o.fencedSequence,
      availableMemoryMiB: this.#o.availableMemoryMiB(),
      freeDiskMiB: this.#o.freeDiskMiB(),
      labels,
      missingLayer: this.#o.missingLayer(spec),
    });
  }

  /** Reserves at once, in the order of the items; resolves with null for what is refused, and when the create is durable else. */
  #admit(
    batch: LaunchSandboxes,
    item: LaunchItem,
    refusal: WireError | null,
    refusing: Promise<Refused | null>[],
    layersLocal: boolean,
  ): Promise<Taken | null> {
    const { driver, admission, generation } = this.#o;
    const { project } = this.#envelope;
    const address = sandboxAddress(project, item.sandboxId);
    if (driver.peek(address)) return Promise.resolve({ item, error: null });
    const admitted = refusal ? { ok: false as const, error: refusal } : admission.admit(item.sandboxId, batch.spec, project);
    if (!admitted.ok) {
      this.#o.log.info('create.refused', { actorId: item.sandboxId, code: admitted.error.code });
      refusing.push(this.#bury(item, admitted.error));
      return Promise.resolve(null);
    }
    const command = createOf(batch, item, admitted.slot, generation, layersLocal);
    return driver.submit(address, command, this.#metaOf(createIdOf(this.#envelope, item)), { birth: true }).then((result) => {
      const held = driver.peek(address);
      if (!held || ENDED_STATUSES.has(held.state.status)) admission.release(item.sandboxId);
      const before = refusedBefore(this.#o.edge, result);
      if (before) {
        refusing.push(Promise.resolve({ ...item, error: before }));
        return null;
      }
      const unsettled = unsettledBy(result);
      if (unsettled) throw new DsecError(unsettled);
      return { item, error: result.ok ? null : result.error };
    });
  }

  /** A refusal is durable before it is told, as everything that leaves an actor. Null: a process before this one has created it. */
  async #bury(item: LaunchItem, error: WireError): Promise<Refused | null> {
    const address = sandboxAddress(this.#envelope.project, item.sandboxId);
    const buried = await this.#o.eventLog.forget(address, tombstoneOfRefused.expectedSequence, tombstoneOfRefused.ttlMs);
    if (buried.outcome === 'unknown') throw new DsecError(buried.error);
    return buried.outcome === 'not_applied' && (await this.#o.eventLog.last(address)) ? null : { ...item, error };
  }

  async #tellRefused(batch: Batch, all: readonly (Refused | null)[]): Promise<void> {
    const refused = all.filter((one) => one !== null).map(({ index, attempt, error }) => ({ index, attempt, error }));
    if (refused.length > 0) await this.#tell(batch, { ...NO_NEWS, refused });
  }

  async #tellHeld(batch: Batch, taken: readonly Taken[]): Promise<void> {
    const held: BatchNews['held'] = [];
    const failed: BatchNews['failed'] = [];
    for (const one of taken) {
      const outcome = this.#outcomeOf(one);
      const { index, attempt } = one.item;
      if (outcome && !outcome.ok) failed.push({ index, attempt, error: outcome.error });
      else held.push({ index, attempt });
    }
    await this.#tell(batch, { ...NO_NEWS, held, failed });
  }

  /** Resolves when every one of them runs or has failed, and that has been said. */
  async #follow(batch: Batch, taken: readonly Taken[]): Promise<void> {
    const gathering = new Gathering(taken.length);
    for (const one of taken) {
      const outcome = this.#outcomeOf(one);
      if (outcome) gathering.settle(one.item, outcome);
      else
        this.#o.settlements.follow(one.item.sandboxId, {
          tell: (later) => gathering.settle(one.item, later),
          close: (error) => gathering.fail(error),
        });
    }
    const stopExtending = this.#keepExtending();
    try {
      while (!gathering.isOver) await this.#tell(batch, await gathering.take());
    } finally {
      stopExtending();
    }
  }

  /** What is known already: from its state, or from a create that its log will never take. */
  #outcomeOf({ item, error }: Taken): CreateOutcome | null {
    const held = this.#o.driver.peek(sandboxAddress(this.#envelope.project, item.sandboxId));
    if (held) return outcomeOf(held.state);
    return { ok: false, error: error ?? toWireError(DsecError.of('SANDBOX_ENDED', `sandbox ${item.sandboxId} has ended and was forgotten`)) };
  }

  #keepExtending(): () => void {
    const timer = setInterval(() => this.#delivery.extend(), EDGE_LIMITS.extendEveryMs);
    return () => clearInterval(timer);
  }

  async #tell({ requestId }: Batch, news: BatchNews): Promise<void> {
    const report = batchReport(this.#envelope, requestId, news, this.#o.clock.now());
    const lane = laneOf(this.#envelope.project, this.#o.laneCount);
    const outcome = await this.#o.queue.enqueue(reportLaneSubject(lane), report.id, encode('report', report));
    if (outcome.outcome !== 'applied') throw new DsecError(outcome.error);
  }
}
