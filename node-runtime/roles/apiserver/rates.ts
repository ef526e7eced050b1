/** How many sandboxes are asked for, started and rejected per second, from the commits that this process hears anyway. */
import type { FleetRates } from '#bus/api/fleet.ts';
import { FLEET_LIMITS } from '#bus/api/fleet.ts';
import type { StoredCommit } from '#actors/ports/event-log.ts';
import type { Clock } from '#actors/ports/clock.ts';
import { countsOf } from '../../ops/commit-counts.ts';

type Second = { asked: number; started: number; failed: number; readonly rejected: Record<string, number> };
const WINDOW_S = FLEET_LIMITS.rateWindowMs / 1_000;

export class Rates {
  readonly #clock: Pick<Clock, 'now'>;
  /** By the second in which it was committed; the present one is not over and not counted. */
  readonly #seconds = new Map<number, Second>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Commits of the past, as a projection that is built anew hears them, fall out of the window at once. */
  heard({ commit }: Pick<StoredCommit, 'commit'>): void {
    const second = Math.floor(commit.at / 1_000);
    const now = this.#second();
    if (second < now - WINDOW_S || second > now + WINDOW_S || (commit.kind !== 'request' && commit.kind !== 'sandbox')) return;
    const { accepted, started, failed, unplaceable } = countsOf(commit);
    const sums = this.#seconds.get(second) ?? { asked: 0, started: 0, failed: 0, rejected: {} };
    this.#seconds.set(second, sums);
    sums.asked += accepted;
    sums.started += started;
    sums.failed += failed ? 1 : 0;
    for (const [code, sandboxes] of Object.entries(unplaceable)) sums.rejected[code] = (sums.rejected[code] ?? 0) + sandboxes;
    for (const old of this.#seconds.keys()) if (old < now - WINDOW_S) this.#seconds.delete(old);
  }

  perSecond(): FleetRates {
    const now = this.#second();
    const counted = [...this.#seconds].filter(([second]) => second >= now - WINDOW_S && second < now).map(([, sums]) => sums);
    const rate = (of: (sums: Second) => number) => counted.reduce((total, sums) => total + of(sums), 0) / WINDOW_S;
    const codes = new Set(counted.flatMap(({ rejected }) => Object.keys(rejected)));
    return {
      asked: rate(({ asked }) => asked),
      started: rate(({ started }) => started),
      failed: rate(({ failed }) => failed),
      rejected: Object.fromEntries([...codes].sort().map((code) => [code, rate(({ rejected }) => rejected[code] ?? 0)])),
    };
  }

  #second(): number {
    return Math.floor(this.#clock.now() / 1_000);
  }
}
