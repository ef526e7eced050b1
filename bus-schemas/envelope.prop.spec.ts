/** Whatever arrives on a subject: a message, or a DsecError that names what is wrong with it. Nothing else, ever. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { API, isApiVerb } from './api/schema.ts';
import { decodeCommand, decodeCommit, encode } from './envelope.ts';
import { DsecError } from './errors.ts';
import { WIRE_LIMITS } from './limits.ts';
import { packOp, unpackOp } from './op/codec.ts';
import { isOpName, OPS } from './op/schema.ts';
import { mutated } from './testing/mutated.ts';
import { SAMPLES } from './testing/samples.ts';

const RUNS = { numRuns: 5_000 };
const EXPECTED = new Set(['MALFORMED_MESSAGE', 'UNSUPPORTED_VERSION']);

/** The result, or undefined after a refusal of the expected shape. Any other exception fails the test. */
const decoded = <T>(decode: () => T): T | undefined => {
  try {
    return decode();
  } catch (thrown) {
    if (!(thrown instanceof DsecError)) throw thrown;
    expect(EXPECTED).toContain(thrown.code);
    expect(thrown.message.length).toBeLessThanOrEqual(1_000);
    expect(JSON.stringify(thrown.toWire()).length).toBeLessThan(20_000);
    return undefined;
  }
};

const samplesOf = (kind: string) => Object.values(SAMPLES[kind] ?? {});

describe('decoding is total', () => {
  test('over arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200, size: 'max' }), (bytes) => {
        decoded(() => decodeCommand(bytes));
        decoded(() => decodeCommit(bytes));
        decoded(() => unpackOp(bytes));
      }),
      RUNS,
    );
  });

  test('over arbitrary JSON', () => {
    fc.assert(
      fc.property(fc.json({ depthSize: 'medium' }), (text) => {
        decoded(() => decodeCommand(text));
        decoded(() => decodeCommit(text));
      }),
      RUNS,
    );
  });

  test('over commands and commits with something wrong in them', () => {
    const commands = fc.oneof(...samplesOf('command').map(mutated));
    const commits = fc.oneof(...samplesOf('commit').map(mutated));
    fc.assert(
      fc.property(commands, (message) => void decoded(() => decodeCommand(JSON.stringify(message)))),
      RUNS,
    );
    fc.assert(
      fc.property(commits, (message) => void decoded(() => decodeCommit(JSON.stringify(message)))),
      RUNS,
    );
  });

  test('over what clients send to the API and to operations', () => {
    for (const [group, table] of [
      ['api', API],
      ['op', OPS],
    ] as const)
      for (const [name, { request }] of Object.entries(table)) {
        const sample = SAMPLES[group]?.[`${name}.request`];
        fc.assert(
          fc.property(mutated(sample), (message) => void request.safeParse(message)),
          { numRuns: 200 },
        );
      }
    for (const name of ['constructor', '__proto__', 'toString', '']) expect([isApiVerb(name), isOpName(name)]).toEqual([false, false]);
  });

  test('a nesting that would overflow a recursive parser is refused', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(decoded(() => decodeCommand(deep))).toBeUndefined();
    expect(decoded(() => decodeCommand(`{"v":1,"data":{"type":"x","deep":${deep}}}`))).toBeUndefined();
  });

  test('a version from the future is told apart from nonsense', () => {
    const codeOf = (text: string) => {
      try {
        decodeCommand(text);
      } catch (thrown) {
        return thrown instanceof DsecError ? thrown.code : 'other';
      }
      return 'none';
    };
    expect([codeOf('{"v":2}'), codeOf('{"v":"1"}'), codeOf('{}'), codeOf('[]'), codeOf('nope'), codeOf('')]).toEqual([
      'UNSUPPORTED_VERSION',
      'MALFORMED_MESSAGE',
      'MALFORMED_MESSAGE',
      'MALFORMED_MESSAGE',
      'MALFORMED_MESSAGE',
      'MALFORMED_MESSAGE',
    ]);
  });
});

describe('encoding', () => {
  test('what was decoded can be encoded and decoded again', () => {
    for (const sample of samplesOf('command')) {
      const once = decodeCommand(JSON.stringify(sample));
      expect(decodeCommand(encode('command', once))).toEqual(once);
    }
    for (const sample of samplesOf('commit')) {
      const once = decodeCommit(JSON.stringify(sample));
      expect(decodeCommit(encode('commit', once))).toEqual(once);
    }
  });

  test('a view into a larger buffer is read as itself', () => {
    const text = Buffer.from(`garbage${JSON.stringify(samplesOf('command')[0])}garbage`);
    expect(decodeCommand(text.subarray(7, text.length - 7)).id).toBe('acme:c-1');
  });

  test('one byte above the limit is refused before it is sent, in bytes and not in characters', () => {
    const fits = 'x'.repeat(WIRE_LIMITS.maxMessageBytes - 2);
    expect(encode('message', fits).byteLength).toBe(WIRE_LIMITS.maxMessageBytes);
    expect(() => encode('message', `${fits}x`)).toThrow(/limit is/);
    expect(() => encode('message', '€'.repeat(400_000))).toThrow(/limit is/);
  });
});

describe('the op frame', () => {
  test('gives back meta and every byte of the body', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 4 }), (meta, parts) => {
        const { meta: back, body } = unpackOp(packOp(meta, ...parts));
        expect(back).toEqual(JSON.parse(JSON.stringify(meta)));
        expect(Buffer.from(body).equals(Buffer.concat(parts))).toBe(true);
      }),
    );
  });

  test('cut anywhere in its head it is malformed, never an exception of another kind', () => {
    const frame = packOp({ v: 1, execId: 'x' }, Buffer.from('body'));
    for (let length = 0; length < frame.byteLength; length += 1) decoded(() => unpackOp(frame.subarray(0, length)));
    expect(() => packOp({}, new Uint8Array(WIRE_LIMITS.maxMessageBytes))).toThrow(/limit is/);
  });
});
