import { createServer } from 'node:net';
import { connect } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { JS, publishRefusal } from './errors.ts';
import { connectJetStream } from './mod.ts';

const refusal = (code: number) => publishRefusal('dsec.ev.0.alpha.sandbox.e.x', { code: 400, err_code: code, description: 'as the server put it' });

describe('publishRefusal', () => {
  test('wrong last sequence is a conflict to be looked into', () => {
    expect(refusal(JS.wrongLastSequence)).toEqual({ outcome: 'conflict' });
  });

  test.each([JS.duplicateInProcess, JS.wrongLastSequenceConstant, JS.storeFailed, 10_008, 10_009, 10_023, 10_163, 10_167, 99_999])(
    '%i proves nothing: unknown, to be repeated with the same id',
    (code) => {
      expect(refusal(code)).toMatchObject({ outcome: 'unknown', error: { outcome: 'unknown', retry: 'same', details: { apiCode: code } } });
    },
  );

  test.each([
    [JS.messageTooLarge, 'PAYLOAD_TOO_LARGE'],
    [JS.headersTooLarge, 'PAYLOAD_TOO_LARGE'],
    [JS.badRequest, 'INVALID_ARGUMENT'],
    [JS.ttlInvalid, 'INVALID_ARGUMENT'],
  ])('%i will never be stored: %s', (code, expected) => {
    expect(refusal(code)).toMatchObject({ outcome: 'rejected', error: { code: expected, outcome: 'not_applied', retry: 'never' } });
  });
});

test('a server that is too old is named with what is needed', async () => {
  // Debian 12 ships 2.9.10; all that counts of it here is what it says of itself.
  const old = createServer((socket) => {
    socket.write(`INFO ${JSON.stringify({ server_id: 'old', version: '2.9.10', headers: true, max_payload: 1_048_576 })}\r\n`);
    socket.on('data', (bytes) => bytes.toString().includes('PING') && socket.write('PONG\r\n'));
  });
  await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve));
  const address = old.address() as { port: number };
  const nc = await connect({ servers: `127.0.0.1:${address.port}` });
  try {
    expect(() => connectJetStream(nc)).toThrow(expect.objectContaining({ code: 'BUS_TOO_OLD', message: expect.stringMatching(/2\.9\.10.*2\.14/) }));
  } finally {
    await nc.close();
    old.close();
  }
});
