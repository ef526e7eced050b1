/** Life stories of every kind: the same with and without memory, and those recorded fold to their recorded state for ever. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeCommit } from '#bus/envelope.ts';
import { RECORDS, readEvent, readState, recordVersion } from '#bus/records.ts';
import { edgeDefinition } from '../edge/edge.definition.ts';
import { jobDefinition } from '../job/job.definition.ts';
import { projectDefinition } from '../project/project.definition.ts';
import { requestDefinition } from '../request/request.definition.ts';
import { rolloutDefinition } from '../rollout/rollout.definition.ts';
import { sandboxDefinition } from '../sandbox/sandbox.definition.ts';
import { SHELVES } from './testing/shelves.ts';

const DEFINITIONS = {
  sandbox: sandboxDefinition,
  request: requestDefinition,
  edge: edgeDefinition,
  project: projectDefinition,
  job: jobDefinition,
  rollout: rolloutDefinition,
};
const filesOf = (kind: string) => {
  const folder = join(import.meta.dirname, '..', kind, 'histories');
  return readdirSync(folder).map((name) => ({ name, lines: readFileSync(join(folder, name), 'utf8').trim().split('\n') }));
};

describe.each(SHELVES)('$kind', ({ kind, stories }) => {
  const definition = DEFINITIONS[kind];
  // One kind's evolve, seen as a function of that kind's own states: the files decide which.
  const evolve = definition.evolve as (state: object | null, event: object) => object;

  test.each(stories)('$name: nothing depends on what an actor keeps in memory', ({ run }) => {
    const [kept, evicted] = [run(false), run(true)];
    expect(evicted.history).toEqual(kept.history);
    expect(evicted.results).toEqual(kept.results);
    expect(evicted.stored).toEqual(kept.stored);
  });

  test.each(filesOf(kind))('recorded $name folds to its recorded state, commit by commit', ({ lines }) => {
    let state: object | null = null;
    for (const [i, line] of lines.entries()) {
      const commit = decodeCommit(line);
      expect(commit).toMatchObject({ kind, version: i + 1 });
      for (const event of commit.events) state = evolve(state, readEvent(kind, event, commit.schema));
      expect(JSON.parse(JSON.stringify(state))).toEqual(JSON.parse(JSON.stringify(readState(kind, commit.state, commit.schema))));
    }
  });

  test('every story has been recorded in the present version', () => {
    const recorded = filesOf(kind).map((f) => f.name);
    const hint = 'run: node actors/kernel/testing/record-histories.mjs';
    for (const { name } of stories) expect(recorded, hint).toContain(`${name}.v${recordVersion(kind)}.jsonl`);
    expect(definition.schema).toBe(recordVersion(kind));
  });
});

test.each(SHELVES)('the recorded histories hold every event of a $kind', ({ kind }) => {
  const seen = filesOf(kind).flatMap((f) => f.lines.flatMap((line) => decodeCommit(line).events.map((e) => e.type)));
  const known = RECORDS[kind].event.options.map((option) => option.shape.type.value);
  expect([...new Set(seen)].sort()).toEqual([...known].sort());
});
