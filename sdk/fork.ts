/**
 * Forks: sandboxes that begin where a live one is. The origin stands still once, for the capture that all its forks share; then they
 * are made like any group, each with an identity, limits and lives of its own. @paper §6.1
 */
import { createHash } from 'node:crypto';
import { DsecError } from '#bus/errors.ts';
import { type SandboxId, SnapshotId } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import { PLATFORM_LABELS, type SandboxSpec } from '#bus/sandbox/spec.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { GroupOptions } from './create/run.ts';
import type { Group } from './group.ts';
import type { RunOptions, WaitOptions } from './run-options.ts';
import type { Session } from './session.ts';
import { capture } from './snapshot.ts';
import { randomKey } from './transport/clock.ts';

/** What a fork does not take over from its origin. With a `key`, repeating the call never makes further forks. */
export type ForkOptions = Partial<Omit<RunOptions, 'image' | 'backend'>> & WaitOptions & Pick<GroupOptions, 'onItem'>;

/** `origin` is its newest state. SANDBOX_ENDED, INVALID_STATE; what became of each fork is in the group. */
export const forkSandbox = async (session: Session, origin: SandboxState, count: number, options: ForkOptions): Promise<Group> => {
  if (!Number.isInteger(count) || count < 1 || count > WIRE_LIMITS.maxCreatesPerMessage)
    throw DsecError.of('INVALID_ARGUMENT', `count: must be a whole number from 1 to ${WIRE_LIMITS.maxCreatesPerMessage}`, { details: { fields: ['count'] } });
  const { timeoutMs, signal, onItem, key: named, ...own } = options;
  const key = (named ?? randomKey()) as string;
  const snapshotId = captureIdFor(origin.id, key);
  // Under a known key the capture is there, and may outlive its origin.
  if (!origin.snapshots.some(({ id }) => id === snapshotId))
    await capture(session, origin.id, { snapshotId, scrub: [], purpose: 'fork' }, { timeoutMs, signal });
  const image = { snapshot: snapshotId, sandbox: origin.id };
  return session.makeGroup({ ...inherited(origin.spec), ...given(own), image, key } as RunOptions, { count, timeoutMs, signal, onItem });
};

const given = <T extends object>(own: T): Partial<T> => Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) as Partial<T>;

/** A function of the key, so that a repeated call asks for the same. */
const captureIdFor = (origin: SandboxId, key: string): SnapshotId =>
  SnapshotId.parse(`fork-${createHash('sha256').update(`${origin}\0${key}`).digest('hex').slice(0, 32)}`);

/** Those are the platform's to give; a fork belongs to its origin's job. */
const isPlatformLabel = (name: string): boolean => (Object.values(PLATFORM_LABELS) as string[]).includes(name);

/** A wire's spec in the words of `runContainer`. */
const inherited = ({ limits, lives, networkRules, initUser, env, labels, hostname }: SandboxSpec): Omit<RunOptions, 'image'> => ({
  memoryLimitMb: limits.memoryMiB,
  swapLimitMb: limits.swapMiB,
  cpuCoresLimit: limits.cpuMillis / 1_000,
  cpuWeight: limits.cpuWeight,
  pidsLimit: limits.pids,
  diskLimitMb: limits.diskMiB ?? undefined,
  openFilesLimit: limits.openFiles ?? undefined,
  outputLimitBytes: limits.outputBytes,
  ttlTotal: lives.totalMs / 1_000,
  ttlRunning: lives.runningMs === null ? null : lives.runningMs / 1_000,
  ttlRunningStop: lives.idleMs === null ? null : lives.idleMs / 1_000,
  networkRules,
  initUser,
  env,
  labels: Object.fromEntries(Object.entries(labels).filter(([name]) => !isPlatformLabel(name))),
  job: labels[PLATFORM_LABELS.job] as RunOptions['job'],
  hostname: hostname ?? undefined,
});
