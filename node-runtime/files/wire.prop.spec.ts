import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DsecError } from '#bus/errors.ts';
import { chunkHeader, commitFrame, encodeRequest, FILE_REQUEST, FrameReader, HostileWorker, type WorkerFrame } from './wire.ts';

const frame = (type: number, body: Uint8Array): Buffer => {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(body.byteLength, 0);
  header.writeUInt16LE(type, 4);
  return Buffer.concat([header, body]);
};
const read = (chunks: readonly Buffer[]): WorkerFrame[] => {
  const reader = new FrameReader();
  const frames: WorkerFrame[] = [];
  for (const chunk of chunks) reader.take(chunk, (one) => frames.push(one));
  return frames;
};
const failed = (reason: number, errno: number, path: string): Buffer => {
  const body = Buffer.alloc(8 + path.length);
  body.writeUInt16LE(reason, 0);
  body.writeInt32LE(errno, 4);
  body.write(path, 8, 'latin1');
  return body;
};

test('frames come whole, wherever the socket cuts them', () => {
  const frames = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 3_000 }).map((bytes) => frame(82, bytes)),
    fc.constant(frame(80, Buffer.alloc(0))),
    fc.constant(frame(83, Buffer.alloc(24, 1))),
    fc.tuple(fc.nat(6), fc.nat(130)).map(([reason, errno]) => frame(84, failed(reason, errno, '/w/x'))),
  );
  fc.assert(
    fc.property(fc.array(frames, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 20 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent);
      const places = [0, ...cuts.map((n) => n % (bytes.byteLength + 1)).sort((a, b) => a - b), bytes.byteLength];
      const whole = read([bytes]);
      expect(read(places.slice(1).map((end, i) => bytes.subarray(places[i], end)))).toEqual(whole);
      expect(whole).toHaveLength(sent.length);
    }),
  );
});

test('whatever else comes is hostile, before its body is waited for', () => {
  expect(() => read([frame(200, Buffer.alloc(0))])).toThrow(HostileWorker);
  expect(() => read([frame(83, Buffer.alloc(23))])).toThrow(HostileWorker);
  expect(() => read([frame(84, failed(99, 0, ''))])).toThrow(HostileWorker);
  const huge = frame(82, Buffer.alloc(1));
  huge.writeUInt32LE(0xffffffff, 0);
  expect(() => read([huge])).toThrow(HostileWorker);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        read([Buffer.from(bytes)]);
      } catch (error) {
        expect(error instanceof HostileWorker || error instanceof DsecError).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('requests carry paths as bytes and leave out what is not given', () => {
  const request = encodeRequest(FILE_REQUEST.write, 7, { path: Buffer.from([0x2f, 0xff]), mode: 0o600, parents: true, sparse: undefined });
  expect(request.subarray(16).toString('latin1')).toBe('path=/\u00ff\0mode=384\0parents=1\0');
  expect([request.readUInt32LE(0), request.readUInt16LE(4), request.readUInt32LE(8)]).toEqual([request.byteLength - 16, 35, 7]);
  expect([chunkHeader(1, 5).readUInt32LE(0), commitFrame(1).readUInt16LE(4)]).toEqual([5, 49]);
});
