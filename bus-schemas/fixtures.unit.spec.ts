/** Every message of every version ever shipped still decodes to what it decoded to then. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { API } from './api/schema.ts';
import { EdgeCommand } from './edge/schema.ts';
import { OPS } from './op/schema.ts';
import { RECORDS } from './records.ts';
import { ProjectCommand } from './project/schema.ts';
import { RequestBusCommand } from './request/schema.ts';
import { SandboxBusCommand, SandboxCommand } from './sandbox/commands.ts';
import { READERS, SAMPLES } from './testing/samples.ts';

type Fixture = { readonly input: unknown; readonly decoded: unknown };
const FOLDER = join(import.meta.dirname, 'fixtures');
const files = readdirSync(FOLDER).map((file) => ({
  file,
  kind: file.split('.')[0] ?? '',
  fixtures: Object.entries(JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Record<string, Fixture>),
}));
const HINT = 'run: node bus-schemas/testing/record-fixtures.mjs';

describe.each(files)('$file', ({ kind, fixtures }) => {
  test.each(fixtures)('%s decodes to its recorded result', (name, { input, decoded }) => {
    expect(JSON.parse(JSON.stringify(READERS[kind]?.(input, name)))).toEqual(decoded);
  });
});

test('every sample is recorded', () => {
  for (const [kind, samples] of Object.entries(SAMPLES)) {
    const recorded = files.filter((f) => f.kind === kind).flatMap((f) => f.fixtures.map(([name]) => name));
    for (const name of Object.keys(samples)) expect(recorded, HINT).toContain(name);
  }
});

test('every command, event, state, verb and operation has a sample', () => {
  const typesOf = (union: { readonly options: readonly { readonly shape: { readonly type: { readonly value: string } } }[] }) =>
    union.options.map((o) => o.shape.type.value);
  const namesOf = (...kinds: string[]) => kinds.flatMap((kind) => Object.keys(SAMPLES[kind] ?? {})).sort();
  expect(namesOf('sandbox-command', 'sandbox-bus-command')).toEqual(typesOf(SandboxCommand).sort());
  expect(namesOf('sandbox-bus-command')).toEqual(typesOf(SandboxBusCommand).sort());
  expect(namesOf('request-bus-command')).toEqual(typesOf(RequestBusCommand).sort());
  expect(namesOf('project-command')).toEqual(typesOf(ProjectCommand).sort());
  expect(namesOf('edge-command')).toEqual(typesOf(EdgeCommand).sort());
  expect(namesOf('state')).toEqual(Object.keys(RECORDS).sort());
  expect(namesOf('event')).toEqual(
    Object.entries(RECORDS)
      .flatMap(([kind, { event }]) => typesOf(event).map((type) => `${kind}.${type}`))
      .sort(),
  );
  const sides = (names: readonly string[]) => names.flatMap((name) => [`${name}.request`, `${name}.response`]).sort();
  expect(namesOf('api')).toEqual(sides(Object.keys(API)));
  expect(namesOf('op')).toEqual(sides(Object.keys(OPS)));
});
