/** Chunks of a group and their reports go to placements by turns: whoever takes a report sends nothing that another has sent. */
import { connect as connectNats, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, expect, test } from 'vitest';
import { decodeCommand } from '#bus/envelope.ts';
import { edgeCommandSubject } from '#bus/subjects.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { LaunchSandboxes } from '#bus/sandbox/commands.ts';
import { busConnectionOptions } from '#adapters/jetstream/mod.ts';
import type { ControlPlane } from '#test/helpers/control-plane.ts';
import { givenControlPlane } from '#test/helpers/given.ts';
import type { DsecClient } from '#sdk/mod.ts';

const COUNT = 900;

let plane: ControlPlane;
let dsec: DsecClient;
let nc: NatsConnection;
givenControlPlane({ control: [['apiserver', 'iam', 'watcher'], ['placement'], ['placement'], ['placement']], fleet: [8], lanes: 2 }, async (given) => {
  ({ host: plane, dsec } = given);
  nc = await connectNats(busConnectionOptions([...plane.servers], 'test'));
});
afterAll(() => nc.close());

test('each node is sent its part of each chunk once, whichever placements take what is said of it', { timeout: 120_000 }, async () => {
  const launches: { readonly id: string; readonly items: readonly string[] }[] = [];
  nc.subscribe(edgeCommandSubject('*' as EdgeName, '_'), {
    callback: (_, message) => {
      const { id, data } = decodeCommand(message.data);
      if (data.type === 'LaunchSandboxes') launches.push({ id, items: (data as LaunchSandboxes).items.map(({ sandboxId }) => sandboxId) });
    },
  });
  await nc.flush();
  const { sandboxes, failures } = await dsec.runContainers({ image: 'small', memoryLimitMb: 16 }, { count: COUNT, timeoutMs: 60_000 });
  expect(failures).toEqual([]);
  await nc.flush();
  expect(launches.length).toBeGreaterThan(3);
  expect(new Set(launches.map(({ id }) => id)).size).toBe(launches.length);
  expect(launches.flatMap(({ items }) => items).sort()).toEqual(sandboxes.map(({ id }) => id).sort());
});
