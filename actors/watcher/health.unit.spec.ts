import { describe, expect, test } from 'vitest';
import { Beat } from '#bus/edge/schema.ts';
import { judgeBeat, judgeSilence, type NodeHealth } from './health.ts';
import { HEALTH_POLICY } from './limits.ts';

const WALL = 1_700_000_000_000;
const capacity = { sandboxes: 9, memoryMiB: 9_999, cpuMillis: 9_999, pids: 999, diskMiB: 9_999, descriptors: 99 };
const fine = { diskFreeMiB: 50_000, memoryAvailableMiB: 9_000, memoryPressurePercent: 1, kernelErrors: 0, kernelError: null };
const beat = (changes: Record<string, unknown> = {}, probes: Record<string, unknown> = {}): Beat =>
  Beat.parse({
    v: 1,
    edge: 'n1',
    generation: 1,
    at: WALL,
    backends: ['container'],
    capacity,
    used: capacity,
    accepting: true,
    running: {},
    probes: { ...fine, ...probes },
    ...changes,
  });

/** One beat a second, all received when the judge's clock says `WALL`. */
const after = (beats: readonly Beat[], from?: NodeHealth): NodeHealth => {
  let health = from;
  for (const one of beats) health = judgeBeat(health, one, (health?.heardAtMs ?? 0) + 1_000, WALL);
  if (!health) throw new Error('no beats');
  return health;
};
const times = (n: number, make: (i: number) => Beat): Beat[] => Array.from({ length: n }, (_, i) => make(i));
const { badBeats, goodBeats } = HEALTH_POLICY;

describe('health of a node', () => {
  test.each([
    ['disk', { diskFreeMiB: 10 }],
    ['memory', { memoryAvailableMiB: 10 }],
    ['memory', { memoryPressurePercent: 90 }],
  ])('%s: suspect only after several bad beats, healthy only after more good ones', (condition, probes) => {
    const bad = (): Beat => beat({}, probes);
    expect(after(times(badBeats - 1, bad))).toMatchObject({ health: 'healthy', conditions: [condition] });
    const suspect = after(times(badBeats, bad));
    expect(suspect).toMatchObject({ health: 'suspect', conditions: [condition] });
    expect(after([...times(goodBeats - 1, () => beat()), bad(), ...times(goodBeats - 1, () => beat())], suspect).health).toBe('suspect');
    expect(
      after(
        times(goodBeats, () => beat()),
        suspect,
      ),
    ).toMatchObject({ health: 'healthy', conditions: [] });
  });

  test('a clock that is far off, in either direction', () => {
    for (const skewMs of [-30_000, 30_000]) expect(after(times(badBeats, () => beat({ at: WALL + skewMs }))).conditions).toEqual(['clock']);
    expect(after(times(badBeats, () => beat({ at: WALL + 1_000 }))).health).toBe('healthy');
  });

  test('kernel errors count while they rise, and from nothing after a restart of the Edge', () => {
    const rising = after(times(badBeats + 1, (i) => beat({}, { kernelErrors: 10 * i })));
    expect(after([beat({}, { kernelErrors: 1_000 })]).conditions).toEqual([]);
    expect(rising).toMatchObject({ health: 'suspect', conditions: ['kernel'] });
    expect(after([beat({}, { kernelErrors: 30 })], rising).conditions).toEqual([]);
    expect(after([beat({ generation: 2 }, { kernelErrors: 2 })], rising).conditions).toEqual([]);
  });

  test('silence is suspect at once, and forgiven after as many good beats as anything else', () => {
    const heard = after(times(3, () => beat()));
    expect(judgeSilence(heard, heard.heardAtMs + HEALTH_POLICY.silentAfterMs)).toBe(heard);
    const silent = judgeSilence(heard, heard.heardAtMs + HEALTH_POLICY.silentAfterMs + 1);
    expect(silent).toMatchObject({ health: 'suspect', conditions: ['silent'] });
    expect(judgeSilence(silent, 1e9)).toBe(silent);
    expect(
      after(
        times(goodBeats - 1, () => beat()),
        silent,
      ).health,
    ).toBe('suspect');
    expect(
      after(
        times(goodBeats, () => beat()),
        silent,
      ).health,
    ).toBe('healthy');
  });
});
