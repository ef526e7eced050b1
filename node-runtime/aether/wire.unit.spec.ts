/** Frames from Aether are taken by fixed sizes: whole ones in order, nothing else. */
import { describe, expect, test } from 'vitest';
import type { ExecId } from '#bus/ids.ts';
import { encodeRequest, type Frame, HEADER_BYTES, HostileFrame, LONGEST_FRAME_BYTES, parseExitRecord, REQUEST, takeFrames } from './wire.ts';

const EXEC_ID = 'ex-0123456789abcdef01234567' as ExecId;

const frame = (type: number, id: number, body: Buffer): Buffer => {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(body.byteLength, 0);
  header.writeUInt16LE(type, 4);
  header.writeBigUInt64LE(BigInt(id), 8);
  return Buffer.concat([header, body]);
};

const exitBody = (): Buffer => {
  const body = Buffer.alloc(112);
  body.write(EXEC_ID, 0);
  for (const [i, value] of [10, 9, 4, 8, 7, 0, 1_700_000_000_000, 0, 1_700_000_000_500].entries()) body.writeBigUInt64LE(BigInt(value), 32 + 8 * i);
  body.writeUInt8(1, 88);
  body.writeUInt8(2, 89);
  body.writeInt32LE(9, 104);
  body.writeUInt8(1, 108);
  body.writeUInt8(1, 109);
  body.writeUInt16LE(3, 110);
  return body;
};

const EXIT = {
  execId: EXEC_ID,
  stdout: { totalBytes: 10, storedBytes: 9, discardedBytes: 4, dropped: 'limit' },
  stderr: { totalBytes: 8, storedBytes: 7, discardedBytes: 0, dropped: 'released' },
  startedAtMs: 1_700_000_000_000,
  endedAtMs: 1_700_000_000_500,
  waitStatus: 9,
  reason: 'timeout',
  pipesOpen: true,
  oomKills: 3,
};

const takeAll = (bytes: Buffer): { frames: Frame[]; taken: number } => {
  const frames: Frame[] = [];
  const taken = takeFrames(bytes, (each) => frames.push(each));
  return { frames, taken };
};

describe('takeFrames', () => {
  const bytes = Buffer.concat([frame(65, 3, Buffer.alloc(0)), frame(97, 0, exitBody()), frame(69, 4, Buffer.from([1]))]);

  test('takes whole frames in order', () => {
    expect(takeAll(bytes)).toEqual({
      taken: bytes.byteLength,
      frames: [
        { type: 'pong', id: 3 },
        { type: 'exit', id: 0, exit: EXIT },
        { type: 'signaled', id: 4, delivered: true },
      ],
    });
  });

  test('leaves what is cut off, wherever it is cut', () => {
    for (let cut = 0; cut < bytes.byteLength; cut += 1) {
      const { frames, taken } = takeAll(bytes.subarray(0, cut));
      expect(cut - taken).toBeLessThan(LONGEST_FRAME_BYTES);
      const rest = takeAll(bytes.subarray(taken));
      expect(frames.length + rest.frames.length).toBe(3);
    }
  });

  test.each([
    ['a type that does not exist', frame(70, 1, Buffer.alloc(0)).fill(200, 4, 5)],
    ['a request', frame(1, 1, Buffer.alloc(0))],
    ['a length that its type does not have', frame(65, 1, Buffer.alloc(1))],
    ['a length of gigabytes, before its body has come', frame(97, 0, Buffer.alloc(0)).fill(0xff, 0, 4)],
    ['an exec id that is none', frame(97, 0, Buffer.alloc(112))],
    ['a failure code that does not exist', frame(67, 1, Buffer.alloc(40))],
    ['an id beyond what a number holds', frame(65, 0, Buffer.alloc(0)).fill(0xff, 8, 16)],
  ])('refuses %s', (_, hostile) => {
    expect(() => takeAll(hostile)).toThrow(HostileFrame);
  });
});

test('a record is the body of EXIT, or none', () => {
  expect(parseExitRecord(exitBody())).toEqual(EXIT);
  expect(parseExitRecord(exitBody().subarray(1))).toBeUndefined();
  expect(parseExitRecord(Buffer.alloc(112))).toBeUndefined();
});

describe('encodeRequest', () => {
  test('pairs, the empty string, the tail', () => {
    const bytes = encodeRequest(
      REQUEST.stdin,
      2 ** 32 + 5,
      [
        ['exec', EXEC_ID],
        ['offset', 7],
      ],
      Buffer.from('é'),
    );
    expect(bytes.readUInt32LE(0)).toBe(bytes.byteLength - HEADER_BYTES);
    expect([bytes.readUInt16LE(4), bytes.readBigUInt64LE(8)]).toEqual([3, 2n ** 32n + 5n]);
    expect(bytes.toString('utf8', HEADER_BYTES)).toBe(`exec=${EXEC_ID}\0offset=7\0\0é`);
  });

  test('bytes that are no UTF-8 arrive as they are; what stands for no byte is refused', () => {
    const bytes = encodeRequest(REQUEST.start, 1, [['arg', 'é\udcff']]);
    expect(bytes.toString('latin1', HEADER_BYTES)).toBe('arg=\u00c3\u00a9\u00ff\0');
    expect(() => encodeRequest(REQUEST.start, 1, [['arg', '\ud800']])).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('a NUL would add a pair: refused', () => {
    expect(() => encodeRequest(REQUEST.start, 1, [['arg', 'a\0user=root']])).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('more than a frame holds: refused', () => {
    expect(() => encodeRequest(REQUEST.start, 1, [], Buffer.alloc(1_048_576))).toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }));
  });
});
