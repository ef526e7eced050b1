/** SIGKILL of the Edge, and now and then of the launcher under it, at random moments of creates, commands and deletes. */
import { setTimeout as delay } from 'node:timers/promises';
import type { DsecClient, DsecError, Sandbox } from '#sdk/mod.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { launcherPid } from '#test/helpers/traces.ts';

export type EdgeKillsOptions = {
  readonly host: TestPlatform;
  readonly dsec: DsecClient;
  readonly rounds: number;
  readonly createsPerRound: number;
  /** Every n-th round the launcher dies with the Edge. */
  readonly launcherEvery: number;
  readonly tag: string;
  readonly onRound?: (round: number, alive: readonly Sandbox[]) => Promise<void>;
};

/** Creates span some tens of milliseconds: a kill lands before, in and after them. */
const KILL_WITHIN_MS = 150;
const BACK_WITHIN_MS = 30_000;

/**
 * Each round: creates and deletes are on their way, the Edge dies at a random moment, and is started again by its supervisor.
 * Every create of the round must have ended as one usable sandbox. Returns those that were not deleted.
 */
export const killEdges = async (o: EdgeKillsOptions): Promise<Sandbox[]> => {
  const alive: Sandbox[] = [];
  for (let round = 0; round < o.rounds; round += 1) {
    const doomed = alive.splice(0, alive.length);
    const creates = Array.from({ length: o.createsPerRound }, (_, n) =>
      o.dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: n % 2 ? 16 : undefined, key: `${o.tag}-${round}-${n}` }, { timeoutMs: 120_000 }),
    );
    const deletes = Promise.all(doomed.map((sandbox) => sandbox.delete({ timeoutMs: 120_000 })));
    await delay(Math.random() * KILL_WITHIN_MS);
    const edge = o.host.platform.pids().edge;
    if (edge === undefined) throw new Error('no Edge runs');
    process.kill(edge, 'SIGKILL');
    if (round % o.launcherEvery === o.launcherEvery - 1) process.kill(launcherPid(o.host), 'SIGKILL');
    await until(() => o.host.platform.pids().edge !== edge, BACK_WITHIN_MS);
    alive.push(...(await Promise.all(creates)));
    await deletes;
    await Promise.all(
      alive.map(async (sandbox) => {
        const { stdout } = await sandbox.exec(['echo', 'alive']);
        if (stdout !== 'alive\n') throw new Error(`${sandbox.id} said ${JSON.stringify(stdout)}`);
      }),
    );
    await o.onRound?.(round, alive);
  }
  return alive;
};

/** The error of work that must fail, or undefined. */
export const errorOf = (work: Promise<unknown>): Promise<DsecError | undefined> =>
  work.then(
    () => undefined,
    (thrown: unknown) => thrown as DsecError,
  );

const until = async (isSo: () => boolean, withinMs: number): Promise<void> => {
  const giveUpAt = performance.now() + withinMs;
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error(`not so within ${withinMs} ms`);
    await delay(10);
  }
};
