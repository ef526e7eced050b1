/** Instances of a role that share actors: each is somebody's, and those of an instance that goes are taken by the others. */
import type { NatsConnection } from '@nats-io/transport-node';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '#actors/ports/clock.ts';
import { type BusUnderTest, startBusUnderTest } from '#test/helpers/bus-under-test.ts';
import { Presence } from './presence.ts';

let bus: BusUnderTest;
const connections: NatsConnection[] = [];
beforeAll(async () => {
  bus = await startBusUnderTest();
});
afterAll(async () => {
  for (const connection of connections) await connection.close();
  await bus.stop();
});

const ACTORS = Array.from({ length: 300 }, (_, i) => `actor-${i}`);
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50));
};

test('every actor has one owner; the dead and the leaving are replaced, the others keep theirs', async () => {
  let changes = 0;
  const open = async (instance: string) => {
    const connection = await connect({ servers: bus.serverUrl });
    connections.push(connection);
    return { connection, presence: new Presence({ connection, clock: systemClock, role: 'jobs', instance, onChange: () => (changes += 1) }) };
  };
  const [a, b, c] = [await open('a'), await open('b'), await open('c')];
  const all = [a, b, c];
  const ownersOf = (actor: string, among: readonly (typeof a)[]) => among.filter(({ presence }) => presence.owns(actor));
  await until(() => ACTORS.every((actor) => ownersOf(actor, all).length === 1));
  const before = new Map(ACTORS.map((actor) => [actor, ownersOf(actor, all)[0]]));
  for (const one of all) expect(ACTORS.filter((actor) => before.get(actor) === one).length).toBeGreaterThan(50);

  await until(() => [a, b, c].every(({ presence }) => presence.count === 3));
  c.presence.close(); // says good-bye
  await until(() => ACTORS.every((actor) => ownersOf(actor, [a, b]).length === 1));
  for (const actor of ACTORS) if (before.get(actor) !== c) expect(ownersOf(actor, [a, b])).toEqual([before.get(actor)]);

  await b.connection.close(); // is silent from now on
  await until(() => ACTORS.every((actor) => a.presence.owns(actor)));
  expect(changes).toBeGreaterThan(0);
  b.presence.close();
  a.presence.close();
});
