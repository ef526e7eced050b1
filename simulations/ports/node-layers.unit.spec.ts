import { describe, expect, test } from 'vitest';
import type { LayerDigest } from '#bus/ids.ts';
import { Random } from '../kernel/random.ts';
import { Trace } from '../kernel/trace.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { GOOD_MACHINE, MACHINE_LIMITS, type MachineQuality } from './machine-quality.ts';
import { NodeLayers } from './node-layers.ts';

const layer = (n: number): LayerDigest => `sha256:${n.toString(16).padStart(64, '0')}` as LayerDigest;

const aNode = (quality: Partial<MachineQuality> = {}, hasStore = true) => {
  const random = Random.fromSeed(1);
  const time = new VirtualTime(new Trace(), random);
  return { time, layers: new NodeLayers(time, random, { ...GOOD_MACHINE, ...quality }, hasStore) };
};
const FOR_LONG_US = 60_000_000;

describe('layers of a node', () => {
  test('what is lacking is fetched once for all who wait, and lies there afterwards', () => {
    const { time, layers } = aNode();
    expect(layers.use([layer(1)])).toBe(false);
    const heard: string[] = [];
    layers.prepare([layer(1), layer(2)], ({ ok }) => heard.push(`both ${ok}`));
    layers.prepare([layer(1)], ({ ok }) => heard.push(`one ${ok}`));
    time.run(FOR_LONG_US);
    expect(heard.sort()).toEqual(['both true', 'one true']);
    expect(time.steps).toBe(2); // a fetch each, however many wait
    expect(layers.use([layer(1), layer(2)])).toBe(true);
    layers.prepare([layer(2)], ({ ok }) => heard.push(`again ${ok}`));
    expect(heard).toContain('again true');
  });

  test('a fetch that breaks off is an error, and may be tried again', () => {
    const { time, layers } = aNode({ fetchErrorPerMille: 1_000 });
    const codes: string[] = [];
    for (let i = 0; i < 20; i += 1) layers.prepare([layer(i)], (result) => codes.push(result.ok ? 'ok' : result.error.code));
    time.run(FOR_LONG_US);
    expect(new Set(codes)).toEqual(new Set(['INTERNAL', 'LAYER_STORE_UNAVAILABLE']));
    expect(layers.use([layer(1)])).toBe(false);
  });

  test('a power loss ends what is under way without a word, and leaves what was there', () => {
    const { time, layers } = aNode();
    layers.prepare([layer(1)], () => {});
    time.run(FOR_LONG_US);
    let told = 0;
    layers.prepare([layer(2)], () => told++);
    layers.powerLoss();
    time.run(2 * FOR_LONG_US);
    expect(told).toBe(0);
    expect([layers.use([layer(1)]), layers.use([layer(2)])]).toEqual([true, false]);
    layers.prepare([layer(2)], () => told++);
    time.run(3 * FOR_LONG_US);
    expect(told).toBe(1);
  });

  test('the least used go when there are too many; beats name what was used last', () => {
    const { time, layers } = aNode();
    for (let i = 0; i < MACHINE_LIMITS.layers; i += 1) layers.prepare([layer(i)], () => {});
    time.run(FOR_LONG_US);
    layers.use([layer(7)]);
    expect(layers.ready()).toHaveLength(MACHINE_LIMITS.beatLayers);
    expect(layers.ready()[0]).toBe(layer(7));
    for (let i = 0; i < 100; i += 1) layers.prepare([layer(MACHINE_LIMITS.layers + i)], () => {});
    time.run(2 * FOR_LONG_US);
    expect(layers.use([layer(7)])).toBe(true);
    expect(Array.from({ length: MACHINE_LIMITS.layers }, (_, i) => layers.use([layer(i)])).filter((is) => !is)).toHaveLength(100);
  });

  test('without a store every layer lies on every node', () => {
    expect(aNode({}, false).layers.use([layer(1)])).toBe(true);
  });
});
