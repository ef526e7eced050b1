/** Every reachable state of a parent and of a chunk × every command: INV-WHOLE, and that nothing is decided twice. */
import { describe, expect, test } from 'vitest';
import { CHUNK_PHASES, chunkSize, groupCounts, type GroupMode } from '#bus/request/group.ts';
import { type RequestCommand, RequestEvent, RequestState } from '#bus/request/schema.ts';
import type { TimestampMs } from '#bus/units.ts';
import { fold } from '../kernel/definition.ts';
import { reachableStates } from '../kernel/testing/reachable.ts';
import { REQUEST_LIMITS } from './limits.ts';
import { requestDefinition } from './request.definition.ts';
import { isGroupOver, phaseOfChunk } from './request.group.ts';
import { address, CHUNK_COMMANDS, chunkOf, DEADLINE_MS, E1, E2, place, placeGroup, reportChunk, T0 } from './testing/samples.ts';

const COUNT = 600;
const reportsOf = (chunk: number): RequestCommand[] =>
  CHUNK_PHASES.slice(1).map((phase) => reportChunk(chunk, phase, phase === 'settled' && chunk < 3 ? chunkSize(COUNT, chunk) : 0));
const apply = (state: RequestState | null, command: RequestCommand, at: number): RequestState | null => {
  const decision = requestDefinition.decide(state, command, { address, at: at as TimestampMs });
  return decision.kind === 'accept' ? fold<RequestState, RequestEvent>(requestDefinition, decision.events, state) : state;
};
const groupOf = (state: RequestState) => state.group ?? expect.fail('it is no group');

describe.each<GroupMode>(['asManyAsFit', 'allOrNothing'])('a parent, %s', (mode) => {
  const commands = [placeGroup(mode, COUNT), ...[0, 1, 2].flatMap(reportsOf), ...reportsOf(7)];
  const shapeOf = (s: RequestState) => JSON.stringify([s.group?.decision, s.group?.chunks.map((c) => c.phase)]);
  const delaysMs = [0, DEADLINE_MS];
  const reached = reachableStates({ definition: requestDefinition, address, commands, delaysMs, startAt: T0, shapeOf });
  const states = reached.flatMap(({ state, events, at }) => (state ? [{ state, events, at }] : []));

  test('keeps schema and replay, and counts what its chunks say', () => {
    expect(states.length).toBeGreaterThan(50);
    for (const { state, events } of states) {
      expect(fold<RequestState, RequestEvent>(requestDefinition, events)).toEqual(state);
      expect(RequestState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
      for (const event of events) expect(RequestEvent.safeParse(event).success).toBe(true);
      expect(groupCounts(groupOf(state)).total).toBe(COUNT);
      expect(groupOf(state).chunks).toHaveLength(3);
    }
  });

  test('a decision is made once and never changed; a phase never goes back', () => {
    for (const { state, at } of states)
      for (const command of commands)
        for (const delayMs of delaysMs) {
          const next = groupOf(apply(state, command, at + delayMs) as RequestState);
          const { decision, chunks } = groupOf(state);
          if (decision) expect(next.decision).toBe(decision);
          for (const [n, { phase }] of chunks.entries())
            expect(CHUNK_PHASES.indexOf(next.chunks[n]?.phase ?? 'waiting')).toBeGreaterThanOrEqual(CHUNK_PHASES.indexOf(phase));
        }
  });

  test('INV-WHOLE: start is decided only when every chunk holds all of its items', () => {
    for (const { state, at } of states)
      for (const command of commands) {
        const next = groupOf(apply(state, command, at) as RequestState);
        if (groupOf(state).decision === null && next.decision === 'start') {
          expect(mode).toBe('allOrNothing');
          expect(next.chunks.map(({ phase }) => phase)).toEqual(['held', 'held', 'held']);
        }
      }
    expect(states.some(({ state }) => state.group?.decision === 'start')).toBe(mode === 'allOrNothing');
    expect(states.some(({ state }) => state.group?.decision === 'abandon')).toBe(mode === 'allOrNothing');
  });

  test('what still has to be said follows from the state: chunks that wait, and chunks that have not obeyed', () => {
    for (const { state } of states) {
      const { decision, chunks } = groupOf(state);
      const effects = requestDefinition.pendingEffects(state);
      const waiting = decision === 'abandon' ? 0 : chunks.filter(({ phase }) => phase === 'waiting').length;
      expect(effects.filter(({ type }) => type === 'ensureChunkPlaced')).toHaveLength(Math.min(waiting, REQUEST_LIMITS.chunksAhead));
      const disobeying = decision ? chunks.filter(({ phase }) => phase !== 'waiting' && phase !== 'settled').length : 0;
      expect(effects.filter(({ type }) => type === 'ensureChunkDecided')).toHaveLength(disobeying);
      if (isGroupOver(state, T0)) expect(effects).toEqual([]);
      expect(isGroupOver(state, T0 + DEADLINE_MS + REQUEST_LIMITS.holdGraceMs)).toBe(true);
    }
  });

  test('one that is open at its deadline is given up, when it is all or nothing', () => {
    for (const { state, at } of states) {
      const next = groupOf(apply(state, placeGroup(mode, COUNT), Math.max(at, T0 + DEADLINE_MS)) as RequestState);
      if (mode === 'allOrNothing') expect(next.decision).not.toBeNull();
      else expect(next.decision).toBeNull();
    }
  });
});

describe.each<GroupMode>(['asManyAsFit', 'allOrNothing'])('a chunk, %s', (mode) => {
  const commands = [place([E1, E2], { chunkOf: chunkOf(mode) }), place([E1, null], { chunkOf: chunkOf(mode) }), ...CHUNK_COMMANDS];
  const shapeOf = (s: RequestState) => JSON.stringify([s.decision, s.items.map((i) => [i.edge, i.attempt, i.progress, i.error?.code])]);
  const reached = reachableStates({ definition: requestDefinition, address, commands, delaysMs: [0, DEADLINE_MS], startAt: T0, shapeOf });
  const states = reached.flatMap(({ state, events, at }) => (state ? [{ state, events, at }] : []));

  test('keeps schema and replay; its phase never goes back', () => {
    expect(states.length).toBeGreaterThan(20);
    for (const { state, events, at } of states) {
      expect(fold<RequestState, RequestEvent>(requestDefinition, events)).toEqual(state);
      expect(RequestState.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
      for (const command of commands) {
        const next = apply(state, command, at) as RequestState;
        const isNewlyDecided = state.decision === null && next.decision !== null;
        if (!isNewlyDecided && phaseOfChunk(state) !== 'lacking')
          // what lacked is placed and settled under a decision
          expect(CHUNK_PHASES.indexOf(phaseOfChunk(next))).toBeGreaterThanOrEqual(CHUNK_PHASES.indexOf(phaseOfChunk(state)));
      }
    }
  });

  test('INV-WHOLE: nodes are told to hold, and to start only what was decided to start', () => {
    for (const { state } of states)
      for (const effect of requestDefinition.pendingEffects(state)) {
        if (effect.type === 'ensureForwarded') expect(effect.heldUntil === null).toBe(mode === 'asManyAsFit');
        if (effect.type === 'ensureReleased') expect(effect.decision).toBe(state.decision);
      }
    if (mode === 'asManyAsFit') expect(states.every(({ state }) => state.decision === null)).toBe(true);
    else expect(states.some(({ state }) => state.decision === 'start')).toBe(true);
  });

  test('of what is given back nothing stays: every item has an error, and every node that may hold one is told', () => {
    for (const { state } of states) {
      if (state.decision !== 'abandon') continue;
      expect(state.items.every((item) => item.error)).toBe(true);
      const told = requestDefinition.pendingEffects(state).flatMap((e) => (e.type === 'ensureReleased' ? e.assignments.map(({ index }) => index) : []));
      const maybeHeld = state.items.flatMap((item, index) => (item.edge && item.progress !== 'run' ? [index] : []));
      expect(told.sort()).toEqual(maybeHeld);
    }
  });
});
