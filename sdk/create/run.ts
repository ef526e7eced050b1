/** `runContainer` and `runContainers`: from the caller's options to handles of running sandboxes. */
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import { ClientKey, type SandboxId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import type { GroupMode } from '#bus/request/group.ts';
import { Group, type GroupItem, type GroupProgress } from '../group.ts';
import { type RunOptions, type WaitOptions, groupSize, orderOf, waitOptionsOf } from '../run-options.ts';
import { Sandbox } from '../sandbox.ts';
import type { ForkOrder, Session } from '../session.ts';
import { randomKey } from '../transport/clock.ts';
import { type CreateOrder, createAndWait } from './create-waiter.ts';
import { createGroupAndWait } from './group-waiter.ts';

export type GroupOptions = WaitOptions & {
  /** 1 to 32,768. */
  readonly count: number;
  /**
   * `asManyAsFit` (default): what finds no place fails by itself, the rest runs. `allOrNothing`: nothing is started before every
   * sandbox has its place, and when one finds none, the call throws why and nothing is left.
   */
  readonly mode?: GroupMode | undefined;
  /** Called once per item, as soon as it runs or has failed. What it throws rejects the whole call once every item is settled. */
  readonly onItem?: ((item: GroupItem, progress: GroupProgress) => void) | undefined;
};
type Wait = { readonly timeoutMs: number; readonly signal: AbortSignal | undefined; readonly deadlineAt: number };

export const runOne = async (session: Session, options: RunOptions, waitOptions: WaitOptions): Promise<Sandbox> => {
  const { spec, key: named } = orderOf(options);
  const wait = startWait(session, waitOptions);
  const key = named ?? (randomKey() as ClientKey);
  const order = { key, count: 1, spec, mayExist: named !== undefined };
  const { items, requestId } = await namingKey(key, () => createAndWait(session, order, { ...wait, onSettled: () => {} }));
  const [item] = items;
  if (item?.outcome?.ok) return new Sandbox(session, item.outcome.state.id, item.outcome.state);
  const failed = item?.outcome && !item.outcome.ok ? item.outcome.error : undefined;
  throw new DsecError(failed ?? deadline(item?.sandboxId ?? null, key, wait.timeoutMs, requestId));
};

export const runMany = async (session: Session, options: RunOptions, { count, mode = 'asManyAsFit', onItem, ...waitOptions }: GroupOptions): Promise<Group> => {
  const { spec, key: named } = orderOf(options);
  const key = named ?? ClientKey.parse(randomKey());
  const order = { key, count: groupSize(count), mode, spec, mayExist: named !== undefined };
  const wait = startWait(session, waitOptions);
  const collected = new Collected(count, onItem);
  const requestId = await namingKey(key, () => (isLarge(order) ? inChunks(session, order, wait, collected) : inOne(session, order, wait, collected)));
  return groupOf(key, collected, wait, requestId);
};

/** As `runMany`, of sandboxes that `ask` orders in another way than by a create; at most 256. */
export const runAsked = async (
  session: Session,
  { key: named, count, askWith }: ForkOrder,
  { onItem, ...waitOptions }: Omit<GroupOptions, 'count' | 'mode'>,
): Promise<Group> => {
  const key = named ?? ClientKey.parse(randomKey());
  const wait = startWait(session, waitOptions);
  const collected = new Collected(count, onItem);
  const order = { key, count, ask: askWith(key), mayExist: named !== undefined };
  const requestId = await namingKey(key, () => inOne(session, order, wait, collected));
  return groupOf(key, collected, wait, requestId);
};

const groupOf = (key: ClientKey, collected: Collected, wait: Wait, requestId: string): Group =>
  new Group(
    key,
    collected.finish((index) => ({ index, error: new DsecError(deadline(collected.sandboxIdOf(index), key, wait.timeoutMs, requestId)) })),
  );

type ManyOrder = Parameters<typeof createGroupAndWait>[1];
const isLarge = ({ count, mode }: ManyOrder): boolean => count > WIRE_LIMITS.maxCreatesPerMessage || mode === 'allOrNothing';

/** A group that one message holds is followed sandbox by sandbox: its handles know their states. */
const inOne = async (session: Session, order: CreateOrder, wait: Wait, collected: Collected): Promise<string> => {
  type Settled = { readonly index: number; readonly outcome: Awaited<ReturnType<typeof createAndWait>>['items'][number]['outcome'] };
  const settled = ({ index, outcome }: Settled): void => {
    if (outcome?.ok) collected.put({ index, sandbox: new Sandbox(session, outcome.state.id, outcome.state) });
    else if (outcome) collected.put({ index, error: new DsecError(outcome.error) });
  };
  const assembly = await createAndWait(session, order, { ...wait, onSettled: settled });
  for (const item of assembly.items) {
    settled(item);
    collected.noteId(item.index, item.sandboxId);
  }
  return assembly.requestId;
};

const inChunks = async (session: Session, order: ManyOrder, wait: Wait, collected: Collected): Promise<string> => {
  const assembly = await createGroupAndWait(session, order, {
    ...wait,
    onSettled: ({ index, outcome }) => {
      if (outcome?.ok) collected.put({ index, sandbox: new Sandbox(session, outcome.sandboxId) });
      else if (outcome) collected.put({ index, error: new DsecError(outcome.error) });
    },
  });
  if (assembly.abandoned) throw new DsecError(assembly.abandoned);
  for (const { index, sandboxId } of assembly.items) collected.noteId(index, sandboxId);
  return assembly.requestId;
};

/** What has become of the items of a group so far. */
class Collected {
  readonly #items: (GroupItem | undefined)[];
  readonly #ids: (SandboxId | null)[];
  readonly #onItem: GroupOptions['onItem'];
  readonly #progress: { total: number; running: number; failed: number };
  #broken: { readonly thrown: unknown } | undefined;

  constructor(count: number, onItem: GroupOptions['onItem']) {
    this.#items = new Array(count);
    this.#ids = new Array(count);
    this.#onItem = onItem;
    this.#progress = { total: count, running: 0, failed: 0 };
  }

  put(item: GroupItem): void {
    if (this.#items[item.index]) return;
    this.#items[item.index] = item;
    this.#progress[item.sandbox ? 'running' : 'failed'] += 1;
    try {
      this.#onItem?.(item, { ...this.#progress });
    } catch (thrown) {
      this.#broken ??= { thrown };
    }
  }

  noteId(index: number, id: SandboxId | null): void {
    this.#ids[index] = id;
  }
  sandboxIdOf(index: number): SandboxId | null {
    return this.#ids[index] ?? null;
  }

  /** Every item, those that are still open by `open`; throws what a callback threw. */
  finish(open: (index: number) => GroupItem): readonly GroupItem[] {
    for (let index = 0; index < this.#items.length; index += 1) if (!this.#items[index]) this.put(open(index));
    if (this.#broken) throw this.#broken.thrown;
    return this.#items as GroupItem[];
  }
}

const startWait = (session: Session, options: WaitOptions): Wait => {
  const { timeoutMs, signal } = waitOptionsOf(options);
  return { timeoutMs, signal, deadlineAt: session.clock.now() + timeoutMs };
};

/** An error after which the create may exist says how to find it. */
const namingKey = async <T>(key: ClientKey, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.outcome !== 'unknown') throw thrown;
    const wire = thrown.toWire();
    const details = { ...wire.details, key };
    throw new DsecError({ ...wire, message: `${wire.message}; the same call with key "${key}" finds what became of it`, details }, { cause: thrown });
  }
};

const deadline = (sandboxId: SandboxId | null, key: ClientKey, timeoutMs: number, requestId: string): WireError =>
  wireError(
    'DEADLINE_EXCEEDED',
    `${sandboxId ? `sandbox ${sandboxId}` : 'the sandbox'} did not run within ${timeoutMs} ms; the same call with key "${key}" goes on waiting for it`,
    { retry: 'same', details: { key, requestId, sandboxId } },
  );
