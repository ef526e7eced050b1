/** INV-QUOTA over random histories: holders die, commits land late, IAM reads behind and starts anew; nothing is ever overspent. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EACH, LEASE_MS, Lending, SEEN_LATER_MS, TEAM, TOP } from './testing/lending.ts';

const TOP_LIMIT = 12;
const TEAM_LIMIT = 8;

type What = 'draw' | 'create' | 'land' | 'acknowledge' | 'end' | 'kill' | 'restart' | 'read' | 'restartIam' | 'settle' | 'wait';
const step = fc.record({
  what: fc.constantFrom<What[]>(
    ...([
      'draw',
      'create',
      'create',
      'create',
      'land',
      'land',
      'land',
      'acknowledge',
      'acknowledge',
      'end',
      'end',
      'end',
      'kill',
      'restart',
      'restart',
    ] as const),
    ...(['read', 'read', 'read', 'restartIam', 'settle', 'settle', 'wait'] as const),
  ),
  who: fc.nat({ max: 2 }),
  team: fc.boolean(),
  count: fc.integer({ min: 1, max: 6 }),
  nth: fc.nat({ max: 40 }),
});

const perform = (world: Lending, { what, who, team, count, nth }: typeof step extends fc.Arbitrary<infer T> ? T : never): void => {
  const holder = world.holders[who];
  const request = world.requests[world.requests.length - 1 - (nth % Math.max(1, world.requests.length))];
  if (!holder) return;
  const project = team ? TEAM : TOP;
  if (what === 'draw') world.draw(holder, project, count, count * 2);
  else if (what === 'create') {
    if (!world.create(holder, project, count)) {
      world.draw(holder, project, count, count * 2);
      world.create(holder, project, count);
    }
  } else if (what === 'read') world.read(world.log.length - (nth % 3));
  else if (what === 'restartIam') world.restartIam();
  else if (what === 'settle') world.settle();
  else if (what === 'kill') world.kill(holder);
  else if (what === 'restart' && !holder.alive) world.restart(holder);
  else if (what === 'wait') world.now += nth * 2;
  else if (request && (what === 'land' || what === 'acknowledge' || what === 'end')) world[what](request);
};

/** Everything still under way comes to its end; nobody creates any more. */
const quiesce = (world: Lending): void => {
  for (const request of world.requests) world.land(request);
  for (let round = 0; round < 6; round += 1) {
    world.now += LEASE_MS + SEEN_LATER_MS;
    world.read(world.log.length);
    for (const request of world.requests) world.acknowledge(request);
    for (const holder of world.holders) world.kill(holder);
    world.settle();
  }
};

test('Σ live + Σ unspent never exceeds the quota of a project or of one above it, and after quiet use equals the fold', () => {
  let lent = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 160, size: 'max' }), (steps) => {
      const world = new Lending(TOP_LIMIT, TEAM_LIMIT);
      for (const one of steps) {
        perform(world, one);
        expect(world.committed(TEAM)).toBeLessThanOrEqual(TEAM_LIMIT);
        expect(world.committed(TOP)).toBeLessThanOrEqual(TOP_LIMIT);
        expect(world.live(TOP)).toBeLessThanOrEqual(TOP_LIMIT);
      }
      quiesce(world);
      expect(world.isQuiet()).toBe(true);
      lent += world.requests.length;
      for (const [project, limit] of [
        [TEAM, TEAM_LIMIT],
        [TOP, TOP_LIMIT],
      ] as const) {
        expect(world.live(project)).toBeLessThanOrEqual(limit);
        // What landed too late for its lease and found no room is in the log, is not forwarded, and is given up by its placement.
        const refused = world.requests.filter((r) => r.state === 'landed').reduce((n, r) => n + r.count, 0);
        if (refused === 0) expect(world.folded(project).sandboxes ?? 0).toBe(world.live(project));
        else expect(world.folded(project).sandboxes ?? 0).toBeGreaterThanOrEqual(world.live(project));
      }
    }),
    { numRuns: 400 },
  );
  expect(lent).toBeGreaterThan(1_000); // the property must have had something to break
});

test('a commit that lands after its lease was settled counts only if there is room for it', () => {
  for (const taken of [false, true]) {
    const world = new Lending(4, 4);
    const [dead, heir] = world.holders;
    if (!dead || !heir) throw new Error('no holders');
    world.draw(dead, TEAM, 4, 4);
    world.create(dead, TEAM, 4);
    world.kill(dead);
    world.now += LEASE_MS + SEEN_LATER_MS;
    for (let i = 0; i < 4; i += 1) world.settle();
    expect(world.isQuiet()).toBe(true);
    if (taken) world.draw(heir, TOP, 1, 1);
    const [request] = world.requests;
    if (!request) throw new Error('nothing was created');
    world.land(request);
    world.read(world.log.length);
    world.acknowledge(request);
    expect(request.state).toBe(taken ? 'landed' : 'forwarded');
    world.draw(heir, TOP, 1, 1);
    expect(world.committed(TOP)).toBeLessThanOrEqual(4);
  }
});

test('what a dead holder had borrowed is lent again as soon as its place has a new life', () => {
  const world = new Lending(1, 1);
  const [holder] = world.holders;
  if (!holder) throw new Error('no holders');
  world.draw(holder, TEAM, 1, 1);
  world.kill(holder);
  world.restart(holder);
  for (let i = 0; i < 4; i += 1) world.settle();
  expect(world.isQuiet()).toBe(true);
  world.draw(holder, TEAM, 1, 1);
  expect(world.create(holder, TEAM, 1)).toBe(true);
  expect(world.now).toBe(0);
});

test('a fence that is not kept is found out: settling without reading the log overspends', () => {
  const world = new Lending(4, 4);
  const [a, b] = world.holders;
  if (!a || !b) throw new Error('no holders');
  world.draw(a, TOP, 4, 4);
  world.create(a, TOP, 4);
  const [request] = world.requests;
  if (!request) throw new Error('nothing was created');
  world.land(request);
  world.acknowledge(request);
  world.now += LEASE_MS + SEEN_LATER_MS;
  for (let i = 0; i < 3; i += 1) world.settle();
  world.draw(b, TOP, 1, 1); // IAM has not read the log: the fence refuses
  expect(world.committed(TOP)).toBe(4);
  expect(b.book.take(TOP, EACH, 1, world.now)).toBeUndefined();
  world.read(world.log.length);
  world.draw(b, TOP, 1, 1); // and now it knows that nothing is left
  expect(b.book.take(TOP, EACH, 1, world.now)).toBeUndefined();
  world.end(request);
  world.read(world.log.length);
  world.draw(b, TOP, 1, 1);
  expect(b.book.take(TOP, EACH, 1, world.now)?.count).toBe(1);
});
