import { describe, expect, test } from 'vitest';
import { wireError } from '#bus/errors.ts';
import type { EdgeName, ProjectName, SandboxId, Shard } from '#bus/ids.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import { accept, type ActorDefinition, type Deadline, type Effect, ignore } from '#actors/kernel/definition.ts';
import type { CommandMeta } from '#actors/kernel/host.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { ManualClock, MemoryEventLog, type WriteFault } from '#adapters/memory/mod.ts';
import { createLog } from '../../log/log.ts';
import { ActorDriver } from './driver.ts';

// A lamp: switched on it calls for light until somebody reports it, and goes out at a deadline.
type Lamp = { status: 'on' | 'lit' | 'off'; untilAt: TimestampMs };
type Command = { type: 'SwitchOn'; untilAt: TimestampMs } | { type: 'ReportLit' } | { type: 'GoOut' };
type Event = { type: 'SwitchedOn'; untilAt: TimestampMs } | { type: 'Lit' } | { type: 'WentOut' };
type Light = Effect & { type: 'ensureLight' };

const lamp: ActorDefinition<Lamp, Command, Event, Light> = {
  kind: 'environment',
  schema: 1,
  decide: (state, command) => {
    if (command.type === 'SwitchOn') return state ? ignore('is on') : accept({ type: 'SwitchedOn', untilAt: command.untilAt });
    if (command.type === 'ReportLit') return state?.status === 'on' ? accept({ type: 'Lit' }) : ignore('is lit');
    return state?.status === 'off' ? ignore('is out') : accept({ type: 'WentOut' });
  },
  evolve: (state, event) => {
    if (event.type === 'SwitchedOn') return { status: 'on', untilAt: event.untilAt };
    return { untilAt: state?.untilAt ?? (0 as TimestampMs), status: event.type === 'Lit' ? 'lit' : 'off' };
  },
  pendingEffects: (state) => (state.status === 'on' ? [{ key: 'light', type: 'ensureLight' }] : []),
  deadlines: (state): Deadline[] => (state.status === 'off' ? [] : [{ kind: 'until', at: state.untilAt, version: 0 }]),
  isOver: (state) => state.status === 'off',
  parseState: (raw) => raw as Lamp,
  forgotten: () => wireError('INVALID_STATE', 'the lamp is gone'),
};

const address: ActorAddress = { shard: '0' as Shard, project: 'p' as ProjectName, kind: 'environment', home: 'n' as EdgeName, id: 'lamp' as SandboxId };
const meta = (commandId: string): CommandMeta => ({ commandId, correlationId: 'c', principal: 'test', at: systemClock.now() });
const later = (ms: number): TimestampMs => (Date.now() + ms) as TimestampMs;
const newLog = (fault: () => WriteFault = () => 'none') => new MemoryEventLog({ shards: ['0' as Shard], clock: new ManualClock(1), fault });

type Options = { eventLog?: MemoryEventLog; runEffect?: (signal: AbortSignal) => Promise<Command | null>; onState?: (state: Lamp) => void };
const newDriver = ({ eventLog = newLog(), runEffect = async () => ({ type: 'ReportLit' }), onState = () => {} }: Options = {}) =>
  new ActorDriver<Lamp, Command, Event, Light>({
    definition: lamp,
    eventLog,
    clock: systemClock,
    log: createLog('test', 'silent'),
    runEffect: (_, { signal }) => runEffect(signal),
    deadlineCommand: () => ({ type: 'GoOut' }),
    onAdopted: onState,
  });
const until = (wanted: Lamp['status']) => {
  let reached = () => {};
  const promise = new Promise<void>((resolve) => {
    reached = resolve;
  });
  return { promise, onState: ({ status }: Lamp) => (status === wanted ? reached() : undefined) };
};

describe('ActorDriver', () => {
  test('runs the effect that the state calls for, and its report becomes the next commit', async () => {
    const lit = until('lit');
    const driver = newDriver(lit);
    expect(await driver.submit(address, { type: 'SwitchOn', untilAt: later(60_000) }, meta('a'))).toMatchObject({ ok: true, decision: 'accepted', version: 1 });
    await lit.promise;
    expect(driver.peek(address)?.stored.commit).toMatchObject({ version: 2, causationId: 'a', correlationId: 'c' });
    driver.close();
  });

  test('an effect that throws is tried again until it is done', async () => {
    let tries = 0;
    const lit = until('lit');
    const driver = newDriver({
      ...lit,
      runEffect: async () => {
        tries += 1;
        if (tries < 3) throw new Error('no current');
        return { type: 'ReportLit' };
      },
    });
    await driver.submit(address, { type: 'SwitchOn', untilAt: later(60_000) }, meta('a'));
    await lit.promise;
    expect(tries).toBe(3);
    driver.close();
  });

  test('an append whose outcome is unknown is repeated, and is stored once', async () => {
    const faults: WriteFault[] = ['lost_request', 'lost_answer', 'lost_answer'];
    const eventLog = newLog(() => faults.shift() ?? 'none');
    const driver = newDriver({ eventLog, runEffect: async () => null });
    expect(await driver.submit(address, { type: 'SwitchOn', untilAt: later(60_000) }, meta('a'))).toMatchObject({ ok: true, version: 1 });
    expect(await eventLog.history(address, 0, 10)).toHaveLength(1);
    driver.close();
  });

  test('nothing leaves before the commit is durable: while the log is away there is no reply and no effect', async () => {
    const eventLog = newLog();
    let effects = 0;
    const driver = newDriver({
      eventLog,
      runEffect: async () => {
        effects += 1;
        return null;
      },
    });
    await driver.submit(address, { type: 'GoOut' }, meta('first')); // loaded: from here on only the append needs the log
    const other: ActorAddress = { ...address, id: 'other' };
    await driver.submit(other, { type: 'ReportLit' }, meta('ignored'));
    eventLog.setConnected(false);
    let replied = false;
    const reply = driver.submit(other, { type: 'SwitchOn', untilAt: later(60_000) }, meta('a')).then(() => {
      replied = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 120));
    expect({ replied, effects }).toEqual({ replied: false, effects: 0 });
    eventLog.setConnected(true);
    await reply;
    expect(effects).toBe(1);
    driver.close();
  });

  test('a new driver takes up from the last commit what the old one left undone', async () => {
    const eventLog = newLog();
    const first = newDriver({ eventLog, runEffect: () => new Promise(() => {}) });
    await first.submit(address, { type: 'SwitchOn', untilAt: later(60_000) }, meta('a'));
    first.close();
    const lit = until('lit');
    const second = newDriver({ eventLog, ...lit });
    for (const stored of await eventLog.lastOfEach({ shard: '0' as Shard })) second.adopt(stored);
    await lit.promise;
    second.close();
  });

  test('a deadline that passed while nobody ran is served at once, and ends the effect', async () => {
    const eventLog = newLog();
    const first = newDriver({ eventLog, runEffect: () => new Promise(() => {}) });
    await first.submit(address, { type: 'SwitchOn', untilAt: later(-1_000) }, meta('a'));
    first.close();
    const out = until('off');
    let aborted = false;
    const second = newDriver({
      eventLog,
      ...out,
      runEffect: (signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve(null);
          });
        }),
    });
    for (const stored of await eventLog.lastOfEach({ shard: '0' as Shard })) second.adopt(stored);
    await out.promise;
    expect(aborted).toBe(true);
    second.close();
  });

  test('closing answers what waits instead of leaving it hanging', async () => {
    const eventLog = newLog();
    eventLog.setConnected(false);
    const driver = newDriver({ eventLog });
    const reply = driver.submit(address, { type: 'GoOut' }, meta('a'));
    driver.close();
    expect(await reply).toMatchObject({ ok: false, error: { code: 'EDGE_UNAVAILABLE' } });
  });
});
