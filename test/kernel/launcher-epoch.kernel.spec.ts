/** Who may speak to the launcher: one Edge epoch at a time; and what it does with bytes that no Edge sends. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LauncherClient } from '#runtime/launcher/client.ts';
import { encodeFrame, takeFrames, fieldOf } from '#runtime/launcher/wire.ts';
import { LauncherStand } from './launcher-stand.ts';

let stand: LauncherStand;
let socketPath: string;

beforeAll(async () => {
  stand = new LauncherStand();
  await stand.connect();
  socketPath = join(stand.runDir, 'launcher.sock');
});

afterAll(async () => {
  expect(await stand.close()).toEqual([]);
});

const raw = async (): Promise<Socket> => {
  const socket = connect(socketPath);
  await once(socket, 'connect');
  return socket;
};

const answerTo = async (socket: Socket, frame: Buffer) => {
  socket.write(frame);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  const [answer] = takeFrames(bytes).frames;
  if (!answer) throw new Error('no whole frame');
  return answer;
};

test('a higher epoch cuts off the lower one; a lower one is refused, by a later launcher too', async () => {
  const old = stand.client;
  const cut = new Promise<void>((resolve) => old.onClose(resolve));
  const newer = await LauncherClient.connect(socketPath, 7);
  await cut;
  await expect(LauncherClient.connect(socketPath, 6)).rejects.toMatchObject({ code: 'EDGE_FENCED' });
  const same = await LauncherClient.connect(socketPath, 7);
  expect(newer.open).toBe(true);
  same.close();
  await newer.quit();
  await expect(stand.connect(6)).rejects.toMatchObject({ code: 'EDGE_FENCED' });
  await stand.connect(8);
});

test('an Edge of another platform is refused, and nobody is cut off for it', async () => {
  await expect(LauncherClient.connect(socketPath, 1_000, 'dsec-somebody-else')).rejects.toMatchObject({ code: 'HOST_UNFIT' });
  expect(stand.client.open).toBe(true);
  expect(await stand.client.list()).toEqual([]);
});

test('a launch goes on when its Edge is cut off, and the next Edge gets its answer by asking again', async () => {
  const launch = stand.client.launch(stand.spec(1));
  const newer = await LauncherClient.connect(socketPath, 9);
  await launch.catch((error) => expect(error).toMatchObject({ code: 'EDGE_UNAVAILABLE', outcome: 'unknown' }));
  const { pid } = await newer.launch(stand.spec(1));
  expect(await newer.list()).toEqual([{ id: stand.id(1), pid }]);
  await newer.destroy({ id: stand.id(1) });
  newer.close();
  await stand.connect(9);
});

test('before HELLO nothing is done; an unknown request is refused and named', async () => {
  const socket = await raw();
  expect(fieldOf(await answerTo(socket, encodeFrame(10, 1, [])), 'code')).toBe('EPOCH');
  expect(fieldOf(await answerTo(socket, encodeFrame(1, 2, [['epoch', 'x']])), 'code')).toBe('EINVAL');
  expect((await answerTo(socket, encodeFrame(1, 3, [['epoch', 9]]))).type).toBe(64);
  for (const type of [0, 63, 64, 65, 999]) expect(fieldOf(await answerTo(socket, encodeFrame(type, 4, [])), 'message')).toContain(String(type));
  for (const type of [2, 3, 5, 6, 7, 8, 9, 11])
    expect(
      fieldOf(
        await answerTo(
          socket,
          encodeFrame(type, 5, [
            ['id', '../x'],
            ['digest', 'y'],
          ]),
        ),
        'code',
      ),
    ).toBe('EINVAL');
  expect(fieldOf(await answerTo(socket, encodeFrame(9, 6, [['id', stand.id(99)]])), 'code')).toBe('ENOENT');
  socket.destroy();
});

test('bytes of no protocol end their connection and nothing else', async () => {
  for (let round = 0; round < 60; round += 1) {
    const socket = await raw();
    socket.on('error', () => {});
    if (round % 2) socket.write(encodeFrame(1, 1, [['epoch', 9]]));
    const bytes = randomBytes(1 + (round % 5) * 97);
    if (round % 3 === 0 && bytes.length > 16) {
      bytes.writeUInt32LE(bytes.length - 16, 0);
      bytes.writeUInt16LE(2 + (round % 10), 4);
    } else if (bytes.length > 4) bytes.writeUInt32LE(0xffff_0000, 0);
    socket.end(bytes);
    socket.resume();
    await once(socket, 'close');
  }
  expect(await stand.client.list()).toEqual([]);
  expect(await stand.client.listImages()).toEqual([stand.base.digest]);
});

test('more connections than there is room for are turned away; the one that works goes on', async () => {
  const sockets = await Promise.all(Array.from({ length: 40 }, raw));
  expect(await stand.client.list()).toEqual([]);
  for (const socket of sockets) socket.destroy();
});
