import { connect, type NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Shard } from '#bus/ids.ts';
import { COMMANDS_STREAM, eventsStream } from '#bus/subjects.ts';
import { startNatsServer, type TestNatsServer } from '#test/helpers/nats-server.ts';
import { connectJetStream, type JetStreamBus } from './mod.ts';
import { differences } from './streams.ts';

let server: TestNatsServer;
let nc: NatsConnection;
let bus: JetStreamBus;
let used = 0;
let shard: Shard;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  nc = await connect({ servers: server.url });
  bus = connectJetStream(nc);
  shard = used.toString(36) as Shard;
  used += 1;
});
afterEach(async () => {
  bus.close();
  await nc.close();
});

const infoOf = async (stream: string) => (await jetstreamManager(nc, { checkAPI: false })).streams.info(stream);

describe('ensureStreams', () => {
  test('makes one stream per shard and one for commands, as the server itself says', async () => {
    await bus.ensureStreams({ shards: [shard] });
    const { config: events } = await infoOf(eventsStream(shard));
    expect(events).toMatchObject({
      subjects: [`dsec.ev.${shard}.>`],
      republish: { src: `dsec.ev.${shard}.>`, dest: `dsec.out.${shard}.>` },
      storage: 'file',
      retention: 'limits',
      discard: 'new',
      allow_direct: true,
      allow_msg_ttl: true,
      allow_rollup_hdrs: true,
      allow_batched: true,
      deny_delete: true,
      max_age: 0,
    });
    const { config: commands } = await infoOf(COMMANDS_STREAM);
    expect(commands).toMatchObject({
      retention: 'workqueue',
      storage: 'file',
      discard: 'new',
      subjects: expect.arrayContaining(['dsec.cmd.create.*', 'dsec.cmd.edge.*.*']),
    });
    await bus.checkStreams({ shards: [shard] });
  });

  test('refuses another number of shards than the first start had, and changes nothing', async () => {
    const more = (used++).toString(36) as Shard;
    await bus.ensureStreams({ shards: [shard] });
    const refused = { code: 'BUS_MISCONFIGURED', message: expect.stringContaining('Set shardCount to 1'), details: { shardCount: 1, asked: 2 } };
    await expect(bus.ensureStreams({ shards: [shard, more] })).rejects.toMatchObject(refused);
    await expect(bus.checkStreams({ shards: [shard, more] })).rejects.toMatchObject(refused);
    await expect(infoOf(eventsStream(more))).rejects.toThrow(/not found/);
    await bus.ensureStreams({ shards: [shard] });
  });

  test('may be repeated, by several processes at once, and keeps what is stored', async () => {
    const other = await connect({ servers: server.url });
    const otherBus = connectJetStream(other);
    await Promise.all([bus.ensureStreams({ shards: [shard] }), otherBus.ensureStreams({ shards: [shard] })]);
    const { created } = await infoOf(eventsStream(shard));
    await bus.ensureStreams({ shards: [shard] });
    expect((await infoOf(eventsStream(shard))).created).toBe(created);
    otherBus.close();
    await other.close();
  });

  test('corrects what can be corrected', async () => {
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    await jsm.streams.add({ name: eventsStream(shard), subjects: [`dsec.ev.${shard}.>`], max_consumers: 10_000 });
    await expect(bus.checkStreams({ shards: [shard] })).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED', message: expect.stringContaining('republish') });
    await bus.ensureStreams({ shards: [shard] });
    await bus.checkStreams({ shards: [shard] });
  });

  test('names the field that cannot be, and what it is instead', async () => {
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    await jsm.streams.add({ name: eventsStream(shard), subjects: [`dsec.ev.${shard}.>`], storage: 'memory', max_consumers: 10_000 });
    await expect(bus.ensureStreams({ shards: [shard] })).rejects.toMatchObject({
      code: 'BUS_MISCONFIGURED',
      message: expect.stringContaining('storage is "memory", must be "file"'),
      details: { stream: eventsStream(shard), fields: expect.arrayContaining(['storage']) },
    });
  });

  test('more copies than servers are refused with the reason', async () => {
    await expect(bus.ensureStreams({ shards: [shard], replicas: 3 })).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED' });
  });

  test('a stream that does not exist is told as such', async () => {
    await expect(bus.checkStreams({ shards: ['z' as Shard] })).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED' });
    await expect(bus.eventLog.bounds('z' as Shard)).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED' });
    await expect(bus.eventLog.tail('z' as Shard, 1, () => {})).rejects.toMatchObject({ code: 'BUS_MISCONFIGURED' });
  });
});

describe('differences', () => {
  test('takes an option that the server dropped for a difference, and left-out defaults for none', () => {
    expect(differences({ allow_batched: true, max_age: 0, deny_purge: false }, {})).toEqual(['allow_batched']);
    expect(differences({ subjects: ['a', 'b'] }, { subjects: ['b', 'a'] })).toEqual([]);
    expect(differences({ republish: { src: 'a', dest: 'b' } }, { republish: { src: 'a', dest: 'c' } })).toEqual(['republish']);
    expect(differences({ republish: { src: 'a', dest: 'b' } }, { republish: { src: 'a', dest: 'b', headers_only: false } })).toEqual([]);
  });
});
