/** Sandboxes that are lost with their node's files: a new one answers what was recorded, runs the rest, and says which is which. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DsecClient, Sandbox } from '#sdk/mod.ts';
import { inside } from '#test/helpers/files.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';
import { scriptedRollout } from '#test/helpers/rollouts.ts';
import { refusal } from '#test/helpers/refusal.ts';

let host: TestPlatform;
let dsec: DsecClient;

givenPlatform({}, (given) => {
  ({ host, dsec } = given);
});

const recorded = (options: object = {}): Promise<Sandbox> => dsec.runContainer({ image: 'small', recordCommands: true, memoryLimitMb: 32, ...options });

/** Nothing of it stays on the node: what is known of it afterwards is known off the node. */
const lose = async (box: Sandbox): Promise<void> => {
  await box.stop();
  rmSync(join(host.dir, 'data/sandboxes', box.id), { recursive: true, force: true });
};

/** Dies as on a node that died: its first process is killed from outside, its files are gone. */
const crash = async (box: Sandbox): Promise<void> => {
  const { pid } = await box.refresh();
  process.kill(pid as number, 'SIGKILL');
  await expect.poll(async () => (await box.refresh()).status, { timeout: 10_000 }).toBe('failed');
  rmSync(join(host.dir, 'data/sandboxes', box.id), { recursive: true, force: true });
};

/** Says something and leaves a mark of having run. */
const step = (box: Sandbox, n: number) => box.runShell(`echo ran-${n} | tee -a /w/ran; echo err-${n} >&2; exit ${n}`, { key: `step-${n}` });
const ranIn = (box: Sandbox) => inside(box, 'cat /w/ran 2> /dev/null || true');

describe('a recovered sandbox', () => {
  test('answers recorded commands without running them, up to the first that is not recorded', async () => {
    const box = await recorded({ labels: { a: 'b' }, env: { E: 'kept' } });
    const originals = [await step(box, 0), await step(box, 1), await step(box, 2)];
    expect(originals.map((r) => r.replayed)).toEqual([false, false, false]);
    await lose(box);
    const next = await dsec.recover(box.id);
    expect((await dsec.recover(box.id)).id).toBe(next.id);
    expect((await next.refresh()).spec).toMatchObject({ recoveredFrom: { sandbox: box.id, snapshot: null }, labels: { a: 'b' }, env: { E: 'kept' } });
    for (const n of [0, 1]) {
      const again = await step(next, n);
      expect(again).toMatchObject({ replayed: true, exitCode: n, stdout: `ran-${n}\n`, stderr: `err-${n}\n`, startedAt: originals[n]?.startedAt });
    }
    expect(await next.attach((await step(next, 0)).execId).stdout.string()).toBe('ran-0\n');
    expect(await refusal(next.runShell('other', { key: 'step-1' }))).toMatchObject({ code: 'KEY_CONFLICT' });
    expect(await ranIn(next)).toBe('');
    // that command was not recorded: from here on everything runs
    expect(await step(next, 2)).toMatchObject({ replayed: false, exitCode: 2 });
    expect(await step(next, 1)).toMatchObject({ replayed: true });
    expect(await ranIn(next)).toBe('ran-2\n');
    await next.stop();
  });

  test('stands on the newest snapshot: what that holds is never run again, what came later once', async () => {
    const box = await recorded();
    await step(box, 0);
    const { snapshotId } = await box.snapshot();
    await step(box, 1);
    await lose(box);
    const next = await dsec.recover(box.id);
    expect((await next.refresh()).spec.recoveredFrom).toMatchObject({ sandbox: box.id, snapshot: { id: snapshotId } });
    expect(await step(next, 3)).toMatchObject({ replayed: false });
    expect(await step(next, 0)).toMatchObject({ replayed: true, stdout: 'ran-0\n' });
    expect(await step(next, 1)).toMatchObject({ replayed: false });
    expect(await ranIn(next)).toBe('ran-0\nran-3\nran-1\n');
    await next.stop();
  });

  test('goes on with its replay behind the death of its Edge, and hands its record on', async () => {
    const box = await recorded();
    for (const n of [0, 1, 2, 3]) await step(box, n);
    await lose(box);
    const next = await dsec.recover(box.id);
    expect(await step(next, 0)).toMatchObject({ replayed: true });
    process.kill(host.platform.pids().edge as number, 'SIGKILL');
    expect(await step(next, 1)).toMatchObject({ replayed: true });
    expect(await step(next, 0)).toMatchObject({ replayed: true });
    await lose(next);
    const third = await dsec.recover(next.id);
    expect(await step(third, 0)).toMatchObject({ replayed: true, stdout: 'ran-0\n' });
    expect(await step(third, 1)).toMatchObject({ replayed: true });
    expect(await step(third, 2)).toMatchObject({ replayed: false });
    process.kill(host.platform.pids().edge as number, 'SIGKILL');
    expect(await step(third, 3)).toMatchObject({ replayed: false });
    expect(await ranIn(third)).toBe('ran-2\nran-3\n');
    await third.stop();
  });

  test('knows nothing of commands that had not ended, and less of long output than there was', async () => {
    const box = await recorded();
    await box.start('echo begun; sleep 600', { key: 'cut-off' });
    const long = await box.runShell('seq 1 100000', { key: 'long' });
    await lose(box);
    const next = await dsec.recover(box.id);
    const again = await next.runShell('seq 1 100000', { key: 'long' });
    expect(again).toMatchObject({ replayed: true, stdoutTotalBytes: long.stdoutTotalBytes, truncated: true, stdoutDropped: 'limit' });
    expect(long.stdout.startsWith(again.stdout) && again.stdoutBytes.byteLength).toBe(65_536);
    const command = await next.start('echo begun; sleep 600', { key: 'cut-off' });
    expect(await command.view()).toMatchObject({ state: 'running', replayed: false });
    await next.stop();
  });

  test('is refused in the place of a living one, of none, and of another project’s', async () => {
    const box = await recorded();
    expect(await refusal(dsec.recover(box.id))).toMatchObject({ code: 'INVALID_STATE' });
    expect(await refusal(dsec.recover(`sb-0-${'0'.repeat(20)}-node-1`))).toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
    await box.stop();
  });
});

describe('an episode with recordCommands', () => {
  const order = (key: string, turns: number) => scriptedRollout(key, turns, { onSandboxLost: 'restore' });

  test('goes on in a new sandbox when the agent’s is lost, and says so', async () => {
    await using trainer = await dsec.openJob('restores', { recordCommands: true });
    const [id] = await trainer.start([order('agent-lost', 3)]);
    for await (const turn of trainer.turns()) {
      if (turn.turn === 1) await crash(await dsec.get((await dsec.jobs.rollout(id as string)).state.sandboxes['agent'] as string));
      await turn.answer(`echo turn-${turn.turn}`);
    }
    const results = [];
    for await (const result of trainer.results()) results.push(result);
    // what step 0 had written was lost with the sandbox, and was not written again
    expect(results[0]).toMatchObject({ outcome: 'finished', turns: 3, steps: 4, result: { counted: '2\n2\n' } });
    await expect.poll(() => failedAgents(id as string), { timeout: 10_000 }).toBe(1);
    await trainer.stopJob();
  });

  test('replays itself when worker and agent are both lost: recorded turns are answered, recorded steps are not run', async () => {
    await using trainer = await dsec.openJob('both-lost', { recordCommands: true });
    const [id] = await trainer.start([order('both', 3)]);
    for await (const turn of trainer.turns()) {
      if (turn.turn === 2) {
        const { state } = await dsec.jobs.rollout(id as string);
        await Promise.all([state.sandboxes['agent'], state.worker].map(async (box) => crash(await dsec.get(box as string))));
      }
      await turn.answer(`echo turn-${turn.turn}`);
    }
    const results = [];
    for await (const result of trainer.results()) results.push(result);
    expect(results[0]).toMatchObject({ outcome: 'finished', turns: 3, steps: 4, result: { counted: '1\n1\n' } });
    await trainer.stopJob();
  });

  test('is over when its new worker asks another thing than the lost one did', async () => {
    await using trainer = await dsec.openJob('diverges', { recordCommands: true });
    const whim = `read -r start; echo '{"type":"turn","request":"'$(cat /proc/sys/kernel/random/uuid)'"}'; read -r answer; sleep 600`;
    const plain = order('whim', 1);
    const [id] = await trainer.start([{ key: 'whim', spec: { ...plain.spec, worker: { ...plain.spec.worker, program: { argv: ['sh', '-c', whim] } } } }]);
    for await (const turn of trainer.turns()) {
      await turn.answer('heard');
      await expect.poll(() => statusOf(trainer.jobId), { timeout: 10_000 }).toBe('running');
      await crash(await dsec.get((await dsec.jobs.rollout(id as string)).state.worker as string));
    }
    const results = [];
    for await (const result of trainer.results()) results.push(result);
    expect(results[0]).toMatchObject({ outcome: 'failed', fault: 'infra', error: { code: 'REPLAY_DIVERGED' } });
    await trainer.stopJob();
  });

  const statusOf = async (jobId: string): Promise<string | undefined> => {
    for await (const { status } of dsec.jobs.rollouts(jobId)) return status;
    return undefined;
  };
  const failedAgents = async (rollout: string): Promise<number> => {
    let count = 0;
    for await (const _ of dsec.list({ labels: { 'dsec/rollout': rollout, 'dsec/role': 'agent' }, status: 'failed' })) count += 1;
    return count;
  };
});
