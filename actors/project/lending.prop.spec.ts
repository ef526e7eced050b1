/** INV-QUOTA over random histories, of projects and of the share of a job: holders die, commits land late, IAM reads behind and starts anew; nothing is ever overspent. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EACH, LEASE_MS, Lending, PAYERS, SEEN_LATER_MS } from './testing/lending.ts';

const TOP_LIMIT = 12;
const TEAM_LIMIT = 8;
const SHARE_LIMIT = 5;
const LIMITS = [
  [PAYERS.job, SHARE_LIMIT],
  [PAYERS.team, TEAM_LIMIT],
  [PAYERS.top, TOP_LIMIT],
] as const;

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
  payer: fc.constantFrom(PAYERS.top, PAYERS.team, PAYERS.job, PAYERS.job),
  count: fc.integer({ min: 1, max: 6 }),
  nth: fc.nat({ max: 40 }),
});

const perform = (world: Lending, { what, who, payer, count, nth }: typeof step extends fc.Arbitrary<infer T> ? T : never): void => {
  const holder = world.holders[who];
  const request = world.requests[world.requests.length - 1 - (nth % Math.max(1, world.requests.length))];
  if (!holder) return;
  if (what === 'draw') world.draw(holder, payer, count, count * 2);
  else if (what === 'create') {
    if (!world.create(holder, payer, count)) {
      world.draw(holder, payer, count, count * 2);
      world.create(holder, payer, count);
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

test('Σ live + Σ unspent never exceeds the share of a job, the quota of its project or of one above it, and after quiet use equals the fold', () => {
  let lent = 0;
  let inShare = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 160, size: 'max' }), (steps) => {
      const world = new Lending(TOP_LIMIT, TEAM_LIMIT, SHARE_LIMIT);
      for (const one of steps) {
        perform(world, one);
        for (const [payer, limit] of LIMITS) {
          expect(world.committed(payer)).toBeLessThanOrEqual(limit);
          expect(world.live(payer)).toBeLessThanOrEqual(limit);
        }
        if (world.live(PAYERS.job) === SHARE_LIMIT) inShare += 1;
      }
      quiesce(world);
      expect(world.isQuiet()).toBe(true);
      lent += world.requests.length;
      for (const [payer, limit] of LIMITS) {
        expect(world.live(payer)).toBeLessThanOrEqual(limit);
        // What landed too late for its lease and found no room is in the log, is not forwarded, and is given up by its placement.
        const refused = world.requests.filter((r) => r.state === 'landed').reduce((n, r) => n + r.count, 0);
        if (refused === 0) expect(world.folded(payer).sandboxes ?? 0).toBe(world.live(payer));
        else expect(world.folded(payer).sandboxes ?? 0).toBeGreaterThanOrEqual(world.live(payer));
      }
    }),
    { numRuns: 400 },
  );
  // The property must have had something to break.
  expect(lent).toBeGreaterThan(1_000);
  expect(inShare).toBeGreaterThan(100);
});

test('a commit that lands after its lease was settled counts only if there is room for it', () => {
  for (const taken of [false, true]) {
    const world = new Lending(4, 4);
    const [dead, heir] = world.holders;
    if (!dead || !heir) throw new Error('no holders');
    world.draw(dead, PAYERS.team, 4, 4);
    world.create(dead, PAYERS.team, 4);
    world.kill(dead);
    world.now += LEASE_MS + SEEN_LATER_MS;
    for (let i = 0; i < 4; i += 1) world.settle();
    expect(world.isQuiet()).toBe(true);
    if (taken) world.draw(heir, PAYERS.top, 1, 1);
    const [request] = world.requests;
    if (!request) throw new Error('nothing was created');
    world.land(request);
    world.read(world.log.length);
    world.acknowledge(request);
    expect(request.state).toBe(taken ? 'landed' : 'forwarded');
    world.draw(heir, PAYERS.top, 1, 1);
    expect(world.committed(PAYERS.top)).toBeLessThanOrEqual(4);
  }
});

test('what a dead holder had borrowed is lent again as soon as its place has a new life', () => {
  const world = new Lending(1, 1);
  const [holder] = world.holders;
  if (!holder) throw new Error('no holders');
  world.draw(holder, PAYERS.team, 1, 1);
  world.kill(holder);
  world.restart(holder);
  for (let i = 0; i < 4; i += 1) world.settle();
  expect(world.isQuiet()).toBe(true);
  world.draw(holder, PAYERS.team, 1, 1);
  expect(world.create(holder, PAYERS.team, 1)).toBe(true);
  expect(world.now).toBe(0);
});

test('a fence that is not kept is found out: settling without reading the log overspends', () => {
  const world = new Lending(4, 4);
  const [a, b] = world.holders;
  if (!a || !b) throw new Error('no holders');
  world.draw(a, PAYERS.top, 4, 4);
  world.create(a, PAYERS.top, 4);
  const [request] = world.requests;
  if (!request) throw new Error('nothing was created');
  world.land(request);
  world.acknowledge(request);
  world.now += LEASE_MS + SEEN_LATER_MS;
  for (let i = 0; i < 3; i += 1) world.settle();
  world.draw(b, PAYERS.top, 1, 1); // IAM has not read the log: the fence refuses
  expect(world.committed(PAYERS.top)).toBe(4);
  expect(b.book.take(PAYERS.top, EACH, 1, world.now)).toBeUndefined();
  world.read(world.log.length);
  world.draw(b, PAYERS.top, 1, 1); // and now it knows that nothing is left
  expect(b.book.take(PAYERS.top, EACH, 1, world.now)).toBeUndefined();
  world.end(request);
  world.read(world.log.length);
  world.draw(b, PAYERS.top, 1, 1);
  expect(b.book.take(PAYERS.top, EACH, 1, world.now)?.count).toBe(1);
});
