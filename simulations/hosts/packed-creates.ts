/**
 * Packed creates at the Edge, as `roles/edge/packed-creates.ts`: admits each item or refuses it, and, for chunks of groups, holds
 * it, releases it, and says what is held, runs or failed. Acknowledged when all that is to be said about it is durable.
 */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { type WireError, wireError } from '#bus/errors.ts';
import type { SandboxId } from '#bus/ids.ts';
import { LaunchSandboxes, ReleaseSandboxes, type SandboxCommand } from '#bus/sandbox/commands.ts';
import { type CreateOutcome, outcomeOf } from '#bus/sandbox/outcome.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
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
import { COMMAND_LIMITS } from '#actors/edge/limits.ts';
import type { CommandMeta } from '#actors/kernel/host.ts';
import type { SimDelivery } from '../ports/queue-consumer.ts';
import type { EdgeCommandsOptions } from './edge-commands.ts';
import { readAs } from './read-as.ts';
import { HOST_LIMITS } from './limits.ts';

type Batch = Pick<LaunchSandboxes, 'requestId' | 'items'>;
type Taken = { readonly item: LaunchItem; readonly error: WireError | null };
type Refused = { readonly item: LaunchItem; readonly refusal: WireError };
/** `again`: something may still change, the batch has to come again. */
type Settled =
  | { readonly kind: 'taken'; readonly taken: Taken }
  | { readonly kind: 'refused'; readonly refused: Refused }
  | { readonly kind: 'again' }
  | { readonly kind: 'known' };
/** Plenty: what is really free on a machine is not simulated, what is promised of it is. */
const PLENTY_MIB = 1_000_000;

export class PackedCreates {
  readonly #o: EdgeCommandsOptions;
  readonly #delivery: SimDelivery;
  readonly #envelope: CommandEnvelope;
  readonly #metaOf: (commandId: string) => CommandMeta;

  constructor(options: EdgeCommandsOptions, delivery: SimDelivery, envelope: CommandEnvelope, metaOf: (commandId: string) => CommandMeta) {
    this.#o = options;
    this.#delivery = delivery;
    this.#envelope = envelope;
    this.#metaOf = metaOf;
  }

  launch(): void {
    const batch = readAs(LaunchSandboxes, this.#envelope.data);
    const refusal = this.#refusalOf(batch);
    const all: Settled[] = [];
    const settle = (one: Settled) => {
      all.push(one);
      if (all.length === batch.items.length) this.#launched(batch, all);
    };
    for (const item of batch.items) this.#admit(batch, item, refusal, settle);
    this.#o.onAdmitted(this.#delivery.sequence);
  }

  release(): void {
    const batch = readAs(ReleaseSandboxes, this.#envelope.data);
    const taken: Taken[] = [];
    let left = batch.items.length;
    let again = false;
    for (const item of batch.items) {
      const address = sandboxAddress(this.#envelope.project, item.sandboxId);
      const command = this.#decided(batch, address);
      this.#o.runner.submit(address, command, this.#metaOf(createIdOf(this.#envelope, item)), (result) => {
        again ||= overtookItsCreate(command.type, result, this.#delivery.attempt) || unsettledBy(result) !== null;
        taken.push({ item, error: result.ok ? null : result.error });
        left -= 1;
        if (left > 0) return;
        if (again) this.#again();
        else if (batch.decision === 'start') this.#follow(batch, taken);
        else this.#delivery.ack();
      });
    }
  }

  #decided({ decision }: ReleaseSandboxes, address: ActorAddress): SandboxCommand {
    if (decision !== 'start') return { type: 'StopSandbox', reason: 'requested' };
    const layers = this.#o.runner.peek(address)?.state.spec.layers;
    return { type: 'StartHeld', layersLocal: layers === undefined || this.#o.layers.use(layers) };
  }

  #launched(batch: LaunchSandboxes, all: readonly Settled[]): void {
    if (all.some(({ kind }) => kind === 'again')) return this.#again();
    const refused = all.flatMap((one) =>
      one.kind === 'refused' ? [{ index: one.refused.item.index, attempt: one.refused.item.attempt, error: one.refused.refusal }] : [],
    );
    const taken = all.flatMap((one) => (one.kind === 'taken' ? [one.taken] : []));
    for (const { error } of refused) this.#o.observer.refused(this.#o.edge, error);
    this.#tell(batch, { ...NO_NEWS, refused }, () => {
      if (batch.follow && batch.heldUntil !== null) this.#tell(batch, this.#heldNews(taken), () => this.#delivery.ack());
      else if (batch.follow) this.#follow(batch, taken);
      else this.#delivery.ack();
    });
  }

  #again(): void {
    this.#delivery.retry(COMMAND_LIMITS.earlyStopRetryMs);
  }

  #refusalOf({ spec }: LaunchSandboxes): WireError | null {
    return refusalOfBatch(this.#envelope.deadlineAt, spec, {
      edge: this.#o.edge,
      now: this.#o.process.clock.now(),
      accepting: this.#o.accepting(),
      sentToLost: this.#delivery.sequence <= (this.#o.lease.state?.fencedSequence ?? 0),
      availableMemoryMiB: PLENTY_MIB,
      freeDiskMiB: PLENTY_MIB,
      labels: {},
      missingLayer: this.#o.missingLayer(),
    });
  }

  #admit(batch: LaunchSandboxes, item: LaunchItem, refusal: WireError | null, settle: (one: Settled) => void): void {
    const { runner, admission, lease, edge } = this.#o;
    const { project } = this.#envelope;
    const address = sandboxAddress(project, item.sandboxId);
    if (runner.peek(address)) return settle({ kind: 'taken', taken: { item, error: null } });
    const admitted = refusal ? { ok: false as const, error: refusal } : admission.admit(item.sandboxId, batch.spec, project);
    if (!admitted.ok) return this.#bury(item, admitted.error, settle);
    const command = createOf(batch, item, admitted.slot, lease.generation, this.#o.layers.use(batch.spec.layers));
    runner.submit(
      address,
      command,
      this.#metaOf(createIdOf(this.#envelope, item)),
      (result) => {
        const held = runner.peek(address);
        if (!held || ENDED_STATUSES.has(held.state.status)) admission.release(item.sandboxId);
        const before = refusedBefore(edge, result);
        if (before) settle({ kind: 'refused', refused: { item, refusal: before } });
        else if (unsettledBy(result)) settle({ kind: 'again' });
        else settle({ kind: 'taken', taken: { item, error: result.ok ? null : result.error } });
      },
      true,
    );
  }

  /** A refusal is durable before it is told. */
  #bury(item: LaunchItem, refusal: WireError, settle: (one: Settled) => void): void {
    const address = sandboxAddress(this.#envelope.project, item.sandboxId);
    this.#o.process.log.forget(address, tombstoneOfRefused.expectedSequence, tombstoneOfRefused.ttlMs, (buried) => {
      if (buried.outcome === 'unknown') return settle({ kind: 'again' });
      if (buried.outcome === 'applied') return settle({ kind: 'refused', refused: { item, refusal } });
      this.#o.process.log.last(address, (newest) => {
        if (!newest.ok) settle({ kind: 'again' });
        else settle(newest.value ? { kind: 'known' } : { kind: 'refused', refused: { item, refusal } });
      });
    });
  }

  #heldNews(taken: readonly Taken[]): BatchNews {
    const news: BatchNews = { refused: [], held: [], running: [], failed: [] };
    for (const one of taken) {
      const outcome = this.#outcomeOf(one);
      const { index, attempt } = one.item;
      if (outcome && !outcome.ok) news.failed.push({ index, attempt, error: outcome.error });
      else news.held.push({ index, attempt });
    }
    return news;
  }

  /** Until every one of them runs or has failed, and that has been said; news gather for a moment before they are told. */
  #follow(batch: Batch, taken: readonly Taken[]): void {
    let news: BatchNews = { refused: [], held: [], running: [], failed: [] };
    let open = taken.length;
    let telling = false;
    const tell = () => {
      telling = false;
      const said = news;
      news = { refused: [], held: [], running: [], failed: [] };
      this.#tell(batch, said, () => (open === 0 && news.running.length + news.failed.length === 0 ? this.#delivery.ack() : undefined));
    };
    const settled = ({ index, attempt }: LaunchItem, outcome: CreateOutcome) => {
      open -= 1;
      if (outcome.ok) news.running.push({ index, attempt });
      else news.failed.push({ index, attempt, error: outcome.error });
      if (telling) return;
      telling = true;
      this.#o.process.after(open === 0 ? 0 : HOST_LIMITS.newsLingerMs, 'news', tell);
    };
    if (open === 0) return this.#delivery.ack();
    for (const one of taken) {
      const outcome = this.#outcomeOf(one);
      if (outcome) settled(one.item, outcome);
      else this.#o.settlements.follow(one.item.sandboxId, (later) => settled(one.item, later));
    }
  }

  #outcomeOf({ item, error }: Taken): CreateOutcome | null {
    const held = this.#o.runner.peek(sandboxAddress(this.#envelope.project, item.sandboxId));
    if (held) return outcomeOf(held.state);
    return { ok: false, error: error ?? wireError('SANDBOX_ENDED', `sandbox ${item.sandboxId} has ended and was forgotten`) };
  }

  #tell({ requestId }: Batch, news: BatchNews, done: () => void): void {
    if (news.refused.length + news.held.length + news.running.length + news.failed.length === 0) return done();
    const { process, laneCount } = this.#o;
    const report = batchReport(this.#envelope, requestId, news, process.clock.now());
    const subject = reportLaneSubject(laneOf(this.#envelope.project, laneCount));
    process.queue.send(subject, report, ({ outcome }) => (outcome === 'applied' ? done() : this.#again()));
  }
}

/** Tells whoever waits what became of sandboxes being started. */
export class Settlements {
  readonly #listeners = new Map<SandboxId, ((outcome: CreateOutcome) => void)[]>();

  adopted(state: SandboxState): void {
    const listeners = this.#listeners.get(state.id);
    const outcome = listeners && outcomeOf(state);
    if (!listeners || !outcome) return;
    this.#listeners.delete(state.id);
    for (const tell of listeners) tell(outcome);
  }

  follow(id: SandboxId, tell: (outcome: CreateOutcome) => void): void {
    this.#listeners.set(id, [...(this.#listeners.get(id) ?? []), tell]);
  }
}
