import { beforeEach, describe, expect, test } from 'vitest';
import type { SandboxId } from '#bus/ids.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import { Random } from '../kernel/random.ts';
import { EPOCH_MS } from '../kernel/clock.ts';
import { Trace } from '../kernel/trace.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { Link } from './link.ts';
import { specOf } from '../workload/spec.ts';
import { Machine } from './machine.ts';
import { GOOD_MACHINE } from './machine-quality.ts';

const SECOND_US = 1_000_000;
const spec = specOf({ memoryMiB: 512, cpuMillis: 1_000, totalMs: 3_600_000, idleMs: null });
const one = { id: 'sb-0-00000000000000000001-n1' as SandboxId, spec, totalDeadlineAt: EPOCH_MS + 3_600_000 } as SandboxState;

let time: VirtualTime;
let machine: Machine;
const born: string[] = [];
const answers: string[] = [];
const hear = (what: string) => (result: { ok: true } | { ok: false; error: { code: string } }) =>
  void answers.push(`${what} ${result.ok ? 'ok' : result.error.code}`);

beforeEach(() => {
  born.length = 0;
  answers.length = 0;
  time = new VirtualTime(new Trace(), Random.fromSeed(1));
  machine = new Machine('n1', time, Random.fromSeed(2), GOOD_MACHINE, [{ born: (_, { id }) => void born.push(id), gone: () => {} }]);
  machine.adoptEpoch(2);
});

describe('a simulated node', () => {
  test('launches once, however often it is asked, and never under an older epoch', () => {
    machine.launch(2, one, hear('first'));
    machine.launch(2, one, hear('second'));
    time.run(SECOND_US);
    machine.launch(2, one, hear('later'));
    machine.launch(1, one, hear('old'));
    time.run(2 * SECOND_US);
    expect(born).toEqual([one.id]);
    expect(answers).toEqual(['first ok', 'second ok', 'later ok', 'old EDGE_FENCED']);
    expect(machine.adoptEpoch(1)).toBe(false);
  });

  test('a destroy ends what starts and what runs, and what was destroyed never starts again', () => {
    machine.launch(2, one, hear('launch'));
    machine.destroy(2, one.id, hear('destroy'));
    time.run(SECOND_US);
    machine.launch(2, one, hear('again'));
    time.run(2 * SECOND_US);
    expect(born).toEqual([]);
    expect(answers).toEqual(['launch SANDBOX_ENDED', 'destroy ok', 'again SANDBOX_ENDED']);
  });

  test('tells its watcher of a death, and takes everything with it when the power goes', () => {
    machine.launch(2, one, hear('launch'));
    time.run(SECOND_US);
    expect(machine.watch(one.id, answers, (heard, { code }) => void heard.push(`gone ${code}`))).toBeNull();
    machine.kill(one.id, 'memory');
    expect(machine.watch(one.id, null, () => {})).toMatchObject({ code: 'SANDBOX_FAILED' });
    machine.launch(2, { ...one, id: 'sb-0-00000000000000000002-n1' as SandboxId }, hear('other'));
    machine.powerLoss();
    time.run(2 * SECOND_US);
    expect(machine.live).toBe(0);
    expect(answers).toEqual(['launch ok', 'gone SANDBOX_FAILED']);
  });
});

describe('a link', () => {
  const deliver = (quality: Partial<Link['quality']>, cut = false): number[] => {
    const link = new Link(time, Random.fromSeed(3), { minUs: 10, maxUs: 5_000, lossPerMille: 0, doublePerMille: 0, strayPerMille: 0, ...quality });
    link.cut = cut;
    const seen: number[] = [];
    for (let i = 0; i < 200; i += 1) link.send('m', () => seen.push(i));
    time.run(time.nowUs + SECOND_US);
    return seen;
  };

  test('keeps the order of what was sent, unless it is told not to', () => {
    expect(deliver({})).toEqual(Array.from({ length: 200 }, (_, i) => i));
    const strayed = deliver({ strayPerMille: 500 });
    expect(strayed).not.toEqual(Array.from({ length: 200 }, (_, i) => i));
    expect(strayed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i));
  });

  test('loses, doubles, and carries nothing while it is cut', () => {
    expect(deliver({ lossPerMille: 500 }).length).toBeLessThan(150);
    expect(deliver({ doublePerMille: 500 }).length).toBeGreaterThan(250);
    expect(deliver({}, true)).toEqual([]);
  });
});
