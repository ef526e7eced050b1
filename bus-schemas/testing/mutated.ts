/** Messages with something wrong in them. */
import fc from 'fast-check';

const hostile = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    -1,
    0,
    1.5,
    1e308,
    Number.MAX_SAFE_INTEGER + 2,
    '',
    '\u0000',
    'a\nb',
    '../..',
    '*',
    '>',
    'x'.repeat(300),
    [],
    {},
    null,
    true,
    '__proto__',
    { __proto__: 1 },
  ),
);
/** A good message with one value, somewhere, replaced, removed or added. */
export const mutated = (message: unknown) =>
  fc.tuple(fc.array(fc.nat(30), { minLength: 1, maxLength: 6 }), hostile, fc.constantFrom('replace', 'remove', 'add')).map(([path, value, how]) => {
    const copy = structuredClone(message) as Record<string, unknown>;
    let at: Record<string, unknown> = copy;
    for (const step of path) {
      const keys = Object.keys(at);
      const key = keys[step % Math.max(1, keys.length)];
      const next = key === undefined ? undefined : at[key];
      if (key !== undefined && next !== null && typeof next === 'object' && step !== path.at(-1)) {
        at = next as Record<string, unknown>;
        continue;
      }
      if (how === 'add' || key === undefined) at['added'] = value;
      else if (how === 'remove') delete at[key];
      else at[key] = value;
      break;
    }
    return copy;
  });
