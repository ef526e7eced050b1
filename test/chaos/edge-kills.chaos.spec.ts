/**
 * Thirty kills of the Edge: what runs goes on without a gap, what is listed lives and what lives is listed, and in the end the
 * kernel has nothing more than at the beginning.
 */
import { expect, test } from 'vitest';
import { findLeftovers, recordNamespaces } from '#infra/demo/leftovers.ts';
import { cgroupNameOf } from '#runtime/config.ts';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { killEdges } from '#test/helpers/edge-kills.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { type Traces, tracesOf } from '#test/helpers/traces.ts';

const ROUNDS = 30;
const CREATES = 10;
const WRITERS = 3;
/** A line is written each tenth of a second; a loaded machine may be late, an Edge that is dead may not matter. */
const GAP_MAX_SECONDS = 15;
const SETTLE_MS = 30_000;

let host: TestPlatform;
let dsec: DsecClient;
let before: Traces;
let atRest: Traces;
let writers: readonly Sandbox[];

givenPlatform({ restartMaxMs: 100 }, async (given) => {
  ({ host, dsec } = given);
  await (await dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 16 })).delete();
  before = tracesOf(host);
  atRest = { ...before, launcherMounts: expect.toBeOneOf([0, 1, 2]) }; // the launcher's empty directory, and an image that nobody uses, until its time
  writers = await Promise.all(
    Array.from({ length: WRITERS }, (_, n) => dsec.runContainer({ image: 'small', memoryLimitMb: 16, labels: { writer: String(n) } })),
  );
  for (const writer of writers) await writer.start('i=0; while :; do i=$((i+1)); echo $i $(date +%s) >> /w/t; sleep 0.1; done');
});

test(`${ROUNDS} kills with ${CREATES} creates and as many deletes in flight`, async () => {
  const alive = await killEdges({
    host,
    dsec,
    rounds: ROUNDS,
    createsPerRound: CREATES,
    launcherEvery: 5,
    tag: 'kill',
    onRound: async (round, live) => {
      const listed: string[] = [];
      for await (const sandbox of dsec.list({ status: ['admitted', 'preparing', 'starting', 'running', 'stopping'] })) listed.push(sandbox.id);
      expect(listed.sort(), `round ${round}`).toEqual([...writers, ...live].map(({ id }) => id).sort());
      expect(tracesOf(host).records, `round ${round}`).toBe(WRITERS + live.length);
    },
  });
  await Promise.all(alive.map((sandbox) => sandbox.delete()));
}, 300_000);

test('what ran all the while has written every line in its time', async () => {
  for (const writer of writers) {
    const lines = (await writer.exec(['cat', '/w/t'])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ').map(Number) as [number, number]);
    expect(lines.map(([i]) => i)).toEqual(lines.map((_, i) => i + 1));
    const gaps = lines.slice(1).map(([, at], i) => at - (lines[i]?.[1] ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(GAP_MAX_SECONDS);
  }
});

test('after deleting all, counts equal those of the beginning, and names can be used again', async () => {
  await Promise.all(writers.map((writer) => writer.delete()));
  await expect.poll(() => tracesOf(host), { timeout: SETTLE_MS }).toEqual(atRest);
  const again = await Promise.all(Array.from({ length: 10 }, (_, n) => dsec.runContainer({ image: 'small', memoryLimitMb: 16, hostname: `again-${n}` })));
  await Promise.all(again.map((sandbox) => sandbox.delete()));
  await expect.poll(() => tracesOf(host), { timeout: SETTLE_MS }).toEqual(atRest);
});

test('ended in the very moment of the Edge’s death, the platform still ends what ran and leaves nothing', async () => {
  const boxes = await Promise.all(Array.from({ length: 3 }, () => dsec.runContainer({ image: 'small', memoryLimitMb: 16, diskLimitMb: 16 })));
  const owned = {
    cgroupName: cgroupNameOf(host.platform.config),
    dirs: [host.dir],
    namespaces: recordNamespaces(boxes.flatMap((box) => box.state?.pid ?? [])),
  };
  await dsec.close();
  process.kill(host.platform.pids().edge as number, 'SIGKILL');
  await host.close();
  await expect
    .poll(() => findLeftovers(owned), { timeout: SETTLE_MS })
    .toEqual({ processes: [], mounts: [], cgroups: [], networkNamespaces: [], loopDevices: [], files: [] });
});
