/** `npm run cluster:reset`: every service is ended and built anew from code, and what lives in sandboxes notices nothing. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { removeCluster } from '#infra/cluster/cluster.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { connect } from '#sdk/mod.ts';
import { makeBusyboxRoot } from '#test/helpers/platform.ts';

let dir: string;
const cluster = async (...words: string[]): Promise<string> => {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [join(projectRoot(), 'build/cluster.mjs'), ...words, '--dir', dir]);
    return stdout;
  } catch (thrown) {
    const said = readFileSync(join(dir, 'cluster.log'), 'utf8').split('\n').slice(-20).join('\n');
    throw new Error(`${words.join(' ')}: ${(thrown as Error).message}\n${said}`, { cause: thrown });
  }
};
const pids = async (): Promise<Map<string, number>> => {
  const { members } = JSON.parse(await cluster('status', '--json')) as { members: { name: string; pid: number }[] };
  return new Map(members.map(({ name, pid }) => [name, pid]));
};

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-cr-'));
  mkdirSync(join(dir, 'layers'));
  const root = join(dir, 'root');
  makeBusyboxRoot(root);
  await buildLayer(new PosixLayerStore({ dir: join(dir, 'layers') }), { name: 'small', kind: 'base', source: { type: 'directory', path: root } });
  await cluster('up', '--detach', '--edges', '2');
}, 180_000);
afterAll(async () => {
  await cluster('down');
  removeCluster(dir);
});

test('live sandboxes and their commands survive it, and answer again', { timeout: 300_000 }, async () => {
  const before = await pids();
  const contextFile = join(dir, 'bus', 'context.json');
  const dsec = await connect({ contextFile });
  const group = await dsec.runContainers({ image: 'small', memoryLimitMb: 32 }, { count: 4 });
  expect(group.failures).toEqual([]);
  const commands = await Promise.all(
    group.sandboxes.map((sandbox) => sandbox.start(['sh', '-c', 'n=0; while [ ! -e /w/end ]; do n=$((n+1)); echo $n; sleep 0.1; done'])),
  );
  await dsec.close();
  await cluster('reset');
  const after = await pids();
  for (const [name, pid] of before) expect(after.get(name)).not.toBe(pid);
  const again = await connect({ contextFile });
  for (const [n, { id }] of group.sandboxes.entries()) {
    const sandbox = await again.get(id);
    expect((await sandbox.exec(['touch', '/w/end'])).exitCode).toBe(0);
    const { exitCode, stdout } = await sandbox.attach(commands[n]?.execId ?? '').result();
    expect(exitCode).toBe(0);
    // One life without a gap: it counted on while nobody was there.
    const lines = stdout.trim().split('\n').map(Number);
    expect(lines).toEqual(lines.map((_, line) => line + 1));
  }
  await again.runContainer({ image: 'small', memoryLimitMb: 32 }).then((sandbox) => sandbox.delete());
  await Promise.all(group.sandboxes.map(async ({ id }) => (await again.get(id)).delete()));
  await again.close();
});
