/** Snapshots of a sandbox: taking one, and the project's list of them. @paper §6.1 */
import type { Decision } from '#bus/api/schema.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { type ClientKey, type LayerDigest, type SandboxId, SnapshotId } from '#bus/ids.ts';
import { ScrubRules, type SnapshotFacts, type SnapshotMade, type SnapshotPurpose, type SnapshotView, STANDARD_SCRUB_RULES } from '#bus/sandbox/snapshot.ts';
import type { WaitOptions } from './run-options.ts';
import type { Session } from './session.ts';
import { type Goal, commandAndSettle } from './transition.ts';
import { randomKey } from './transport/clock.ts';

export type SnapshotOptions = WaitOptions & {
  /** Its name in the project: lower-case letters, digits, ".", "_", "-". Random when absent. */
  readonly snapshotId?: string | undefined;
  /**
   * What it must not carry: paths below /, with `*`, `?` and `**`; `standard` for temporary files, caches, logs, histories and keys.
   * Nothing is removed when absent. What was removed is in the facts.
   */
  readonly scrub?: 'standard' | readonly string[] | undefined;
};

export type Snapshot = {
  readonly snapshotId: string;
  readonly layer: LayerDigest;
  readonly facts: SnapshotFacts;
};

export const takeSnapshot = async (session: Session, id: SandboxId, options: SnapshotOptions): Promise<Snapshot> => {
  const snapshotId = SnapshotId.safeParse(options.snapshotId ?? randomKey());
  if (!snapshotId.success) throw invalid('INVALID_ARGUMENT', 'snapshotId', snapshotId.error);
  const scrub = ScrubRules.safeParse(options.scrub === 'standard' ? STANDARD_SCRUB_RULES : (options.scrub ?? []));
  if (!scrub.success) throw invalid('INVALID_ARGUMENT', 'scrub', scrub.error);
  const { layer } = await capture(session, id, { snapshotId: snapshotId.data, scrub: scrub.data, purpose: 'keep' }, options);
  const listed = await findSnapshot(session, snapshotId.data);
  if (!listed) throw DsecError.of('SNAPSHOT_NOT_FOUND', `snapshot ${snapshotId.data} of ${id} was made and has been removed since`);
  return { snapshotId: snapshotId.data, layer, facts: listed.facts };
};

/** Has it made, once per name, and waits for it. */
export const capture = async (
  session: Session,
  id: SandboxId,
  order: { readonly snapshotId: SnapshotId; readonly scrub: ScrubRules; readonly purpose: SnapshotPurpose },
  options: WaitOptions,
): Promise<SnapshotMade> => {
  // One name is tried again under another key when it failed before: the name is what is asked for once.
  const key = randomKey() as ClientKey;
  const goal: Goal = { verb: 'snapshot', reached: (state) => state.snapshots.some((made) => made.id === order.snapshotId), endIsGoal: false };
  const send = (): Promise<Decision> => session.api.call('snapshot', { id, key, ...order }, { signal: options.signal });
  const state = await commandAndSettle(session, id, goal, send, options);
  const made = state?.snapshots.find((one) => one.id === order.snapshotId);
  if (!made) throw DsecError.of('INTERNAL', `snapshot ${order.snapshotId} of ${id} is recorded without a layer`);
  return made;
};

/** The project's snapshots by id, or those of one sandbox. */
export async function* listSnapshots(session: Session, options: { readonly sandboxId?: string | undefined } = {}): AsyncGenerator<SnapshotView> {
  const filter = options.sandboxId === undefined ? {} : { sandboxId: options.sandboxId as SandboxId };
  for (let after: string | null | undefined; after !== null; ) {
    const page = await session.api.call('snapshots', after === undefined ? filter : { ...filter, after });
    yield* page.snapshots;
    after = page.next;
  }
}

const findSnapshot = async (session: Session, id: SnapshotId): Promise<SnapshotView | undefined> => {
  const { snapshots } = await session.api.call('snapshots', { snapshotId: id });
  return snapshots[0];
};
