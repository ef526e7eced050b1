/** A placement dies between its choice, which is durable, and the first message to an Edge: another one forwards that choice, once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { connect as connectNats } from '@nats-io/transport-node';
import { afterEach, expect, test } from 'vitest';
import { type ClientKey, type ProjectName, requestIdFor } from '#bus/ids.ts';
import { RequestState } from '#bus/request/schema.ts';
import { requestAddress } from '#bus/subjects.ts';
import { busConnectionOptions, connectJetStream } from '#adapters/jetstream/mod.ts';
import { bundled } from '#test/helpers/bundled.ts';
import { type ControlPlane, startControlPlane } from '#test/helpers/control-plane.ts';

const COUNT = 40;
const SHARDS = 2;

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** Resolves with the child when it takes commands; `line` with the next line that begins so. */
const startStandstill = async (plane: ControlPlane): Promise<{ child: ChildProcess; line(start: string): Promise<string> }> => {
  const program = await bundled('test/helpers/placement-child.ts');
  const child = spawn(process.execPath, [program, plane.servers[0] ?? '', '1', String(SHARDS)], { stdio: ['ignore', 'pipe', 'inherit'] });
  undo.push(async () => void child.kill('SIGKILL'));
  const said: string[] = [];
  let wake = (): void => {};
  createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on('line', (line) => {
    said.push(line);
    wake();
  });
  const line = async (start: string): Promise<string> => {
    for (;;) {
      const found = said.find((one) => one.startsWith(start));
      if (found) return found;
      if (child.exitCode !== null) throw new Error(`the child ended with ${child.exitCode} before it said ${start}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
        child.once('exit', () => resolve());
      });
    }
  };
  await line('ready');
  return { child, line };
};

test('what it chose is forwarded by another, and nothing else', async () => {
  const plane = await startControlPlane({ control: [['apiserver', 'iam', 'watcher']], fleet: [4], shards: SHARDS });
  undo.push(() => plane.close());
  const dsec = await plane.connect();
  undo.push(() => dsec.close());
  const nc = await connectNats(busConnectionOptions([...plane.servers], 'test'));
  undo.push(() => nc.close());
  const { eventLog, commandQueue } = connectJetStream(nc);
  const key = 'between' as ClientKey;
  const project = plane.project as ProjectName;
  const address = requestAddress(project, requestIdFor(project, key, SHARDS));
  const recorded = async (): Promise<RequestState> => RequestState.parse((await eventLog.last(address))?.commit.state);

  const { child, line } = await startStandstill(plane);
  const work = dsec.runContainers({ image: 'small', memoryLimitMb: 16, key }, { count: COUNT, timeoutMs: 120_000 });
  work.catch(() => {}); // looked at below
  const subject = (await line('before ')).slice('before '.length);
  child.kill('SIGKILL');
  await once(child, 'exit');

  const chosen = (await recorded()).items.map(({ sandboxId, edge, attempt }) => ({ sandboxId, edge, attempt }));
  expect(chosen).toHaveLength(COUNT);
  expect(chosen.every(({ sandboxId }) => sandboxId !== null)).toBe(true);
  expect(await commandQueue.waiting(subject, 0, 10)).toEqual([]); // nothing was forwarded

  await plane.startControl(['placement']);
  const group = await work;
  expect(group.failures).toEqual([]);
  expect(group.sandboxes.map(({ id }) => id).sort()).toEqual(chosen.map(({ sandboxId }) => sandboxId).sort());
  expect((await recorded()).items.map(({ sandboxId, edge, attempt }) => ({ sandboxId, edge, attempt }))).toEqual(chosen);
  const live: string[] = [];
  for await (const { id } of dsec.list({ pageSize: 500 })) live.push(id);
  expect(live.sort()).toEqual(chosen.map(({ sandboxId }) => sandboxId).sort());
});
