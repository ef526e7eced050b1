/** `runContainer` and `runContainers`: from the caller's options to handles of running sandboxes. */
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import { ClientKey } from '#bus/ids.ts';
import { Gate } from '../concurrency.ts';
import { Group, type GroupItem, type GroupProgress } from '../group.ts';
import { SDK_LIMITS } from '../limits.ts';
import { type RunOptions, type WaitOptions, chunksOf, orderOf, waitOptionsOf } from '../run-options.ts';
import { Sandbox } from '../sandbox.ts';
import type { Session } from '../session.ts';
import { randomKey } from '../transport/clock.ts';
import type { Assembly, Item } from './assembly.ts';
import { createAndWait } from './create-waiter.ts';

export type GroupOptions = WaitOptions & {
  readonly count: number;
  /** Called once per item, as soon as it runs or has failed. What it throws rejects the whole call once every item is settled. */
  readonly onItem?: ((item: GroupItem, progress: GroupProgress) => void) | undefined;
};
type Wait = { readonly timeoutMs: number; readonly signal: AbortSignal | undefined; readonly deadlineAt: number };

export const runOne = async (session: Session, options: RunOptions, waitOptions: WaitOptions): Promise<Sandbox> => {
  const { spec, key: named } = orderOf(options);
  const wait = startWait(session, waitOptions);
  const key = named ?? (randomKey() as ClientKey);
  const assembly = await create(session, { key, count: 1, spec, mayExist: named !== undefined }, wait, () => {});
  const item = itemOf(session, assembly.items[0] as Item, 0, key, wait.timeoutMs, assembly);
  if (item.error) throw item.error;
  return item.sandbox;
};

export const runMany = async (session: Session, options: RunOptions, { count, onItem, ...waitOptions }: GroupOptions): Promise<Group> => {
  const { spec, key: named } = orderOf(options);
  const key = named ?? ClientKey.parse(randomKey());
  const chunks = chunksOf(key, count);
  const wait = startWait(session, waitOptions);
  const gate = new Gate(SDK_LIMITS.chunksInFlight);
  const items = new Array<GroupItem>(count);
  const progress = { total: count, running: 0, failed: 0 };
  let broken: { thrown: unknown } | undefined;
  const put = (item: GroupItem): void => {
    if (items[item.index]) return;
    items[item.index] = item;
    progress[item.sandbox ? 'running' : 'failed'] += 1;
    try {
      onItem?.(item, { ...progress });
    } catch (thrown) {
      broken ??= { thrown };
    }
  };
  const refusals: DsecError[] = [];
  await Promise.all(
    chunks.map(async (chunk) => {
      const order = { key: chunk.key, count: chunk.count, spec, mayExist: named !== undefined };
      const settled = (item: Item, assembly?: Assembly): void => put(itemOf(session, item, chunk.first, key, wait.timeoutMs, assembly));
      try {
        const assembly = await gate.run(() => create(session, order, wait, settled));
        for (const item of assembly.items) settled(item, assembly);
      } catch (thrown) {
        if (!(thrown instanceof DsecError) || thrown.code === 'CANCELLED') throw thrown;
        refusals.push(thrown);
        for (let n = 0; n < chunk.count; n += 1) put({ index: chunk.first + n, error: thrown });
      }
    }),
  );
  if (broken) throw broken.thrown;
  if (refusals.length === chunks.length) throw refusals[0];
  return new Group(key, items);
};

const startWait = (session: Session, options: WaitOptions): Wait => {
  const { timeoutMs, signal } = waitOptionsOf(options);
  return { timeoutMs, signal, deadlineAt: session.clock.now() + timeoutMs };
};

const create = async (session: Session, order: Parameters<typeof createAndWait>[1], wait: Wait, onSettled: (item: Item) => void): Promise<Assembly> => {
  try {
    return await createAndWait(session, order, { ...wait, onSettled });
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.outcome !== 'unknown') throw thrown;
    const wire = thrown.toWire();
    const details = { ...wire.details, key: order.key };
    throw new DsecError({ ...wire, message: `${wire.message}; the same call with key "${order.key}" finds what became of it`, details }, { cause: thrown });
  }
};

const itemOf = (session: Session, item: Item, first: number, key: ClientKey, timeoutMs: number, assembly: Assembly | undefined): GroupItem => {
  const index = first + item.index;
  if (item.outcome?.ok) return { index, sandbox: new Sandbox(session, item.outcome.state.id, item.outcome.state) };
  return { index, error: new DsecError(item.outcome ? item.outcome.error : deadline(item, key, timeoutMs, assembly)) };
};

const deadline = (item: Item, key: ClientKey, timeoutMs: number, assembly: Assembly | undefined): WireError =>
  wireError(
    'DEADLINE_EXCEEDED',
    `${item.sandboxId ? `sandbox ${item.sandboxId}` : 'the sandbox'} did not run within ${timeoutMs} ms; the same call with key "${key}" goes on waiting for it`,
    {
      retry: 'same',
      details: { key, requestId: assembly?.requestId, sandboxId: item.sandboxId },
    },
  );
