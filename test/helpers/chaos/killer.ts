/** Kills a random process of a cluster with SIGKILL, again and again. Supervisors start it again. */
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster, Member } from '#infra/cluster/cluster.ts';

export type Kill = { readonly name: string; readonly atMs: number };
export type KillerOptions = {
  readonly cluster: Pick<Cluster, 'members'>;
  /** Which kinds of members die; any when left out. */
  readonly kinds?: readonly Member['kind'][];
  /** Pause before each kill, from … to, in milliseconds. */
  readonly everyMs: readonly [number, number];
  readonly until: () => boolean;
  readonly onKill?: (name: string) => void;
  /** Whether it does its work again; where nobody says, living for a few seconds will do. */
  readonly isReady?: (member: Member) => Promise<boolean>;
};

/** A member that was killed is killed again only once it has been back for this long: two of three servers down is no quorum. */
const BACK_FOR_MS = 3_000;
const POLL_MS = 200;

export const runKiller = async ({ cluster, kinds, everyMs: [from, to], until, onKill, isReady }: KillerOptions): Promise<Kill[]> => {
  const kills: Kill[] = [];
  const startedAt = performance.now();
  const seenSince = new Map<string, { pid: number | undefined; at: number }>();
  const isBack = ({ name, pid }: Member): boolean => {
    const now = pid();
    const seen = seenSince.get(name);
    if (!seen || seen.pid !== now) seenSince.set(name, { pid: now, at: performance.now() });
    return now !== undefined && isAlive(now) && seen !== undefined && seen.pid === now && performance.now() - seen.at > BACK_FOR_MS;
  };
  while (!until()) {
    for (const dueAt = performance.now() + randomInt(from, to + 1); performance.now() < dueAt && !until(); await delay(POLL_MS))
      cluster.members.forEach(isBack);
    if (until()) break;
    const others = cluster.members.filter(isBack);
    // A server of the bus is spared while another one is away.
    const busIsWhole = cluster.members.filter(({ kind }) => kind === 'bus').every((member) => others.includes(member));
    const victims = others.filter(({ kind }) => (kind !== 'bus' || busIsWhole) && (kinds?.includes(kind) ?? true));
    const victim = victims[randomInt(Math.max(1, victims.length))];
    const pid = victim?.pid();
    if (!victim || pid === undefined || (isReady && !(await isReady(victim)))) continue;
    process.kill(pid, 'SIGKILL');
    kills.push({ name: victim.name, atMs: Math.round(performance.now() - startedAt) });
    onKill?.(victim.name);
  }
  return kills;
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
