/** Aether alone: who commands run as, what they may do, how they fail to start, and that nothing ends PID 1 or makes it grow. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExecId } from '#bus/ids.ts';
import { AetherClient, type AetherEvents, type StartRequest } from '#runtime/aether/client.ts';
import type { Exit } from '#runtime/aether/wire.ts';
import { connectUnix } from '#runtime/unix-connect.ts';
import { type Stand, startAether } from './aether-stand.ts';

let lastExec = 0;
const newExecId = (): ExecId => {
  lastExec += 1;
  return `ex-${lastExec.toString(16).padStart(24, '0')}` as ExecId;
};

/** One connection that remembers what came unasked. */
class Edge {
  readonly exits = new Map<ExecId, Exit[]>();
  client!: AetherClient;
  closed: Promise<Error | undefined>;
  #onExit: (() => void)[] = [];

  private constructor() {
    this.closed = Promise.resolve(undefined);
  }

  static async connect(stand: Stand): Promise<Edge> {
    const edge = new Edge();
    let onClose = (_: Error | undefined): void => undefined;
    edge.closed = new Promise((resolve) => {
      onClose = resolve;
    });
    const events: AetherEvents = {
      progress: () => undefined,
      exit: (exit) => {
        edge.exits.set(exit.execId, [...(edge.exits.get(exit.execId) ?? []), exit]);
        for (const wake of edge.#onExit.splice(0)) wake();
      },
      startFailed: () => undefined,
      close: (error) => onClose(error),
    };
    const client = await AetherClient.connect(stand.socketPath, events);
    if (!client) throw new Error('Aether does not listen');
    edge.client = client;
    return edge;
  }

  request(argv: string[], options: Partial<StartRequest> = {}): StartRequest {
    return {
      execId: newExecId(),
      argv,
      env: {},
      cwd: '/',
      user: 'root',
      stdin: 'none',
      stdinBytes: Buffer.alloc(0),
      timeoutMs: 0,
      outputLimitBytes: 1_000_000,
      ...options,
    };
  }

  async ended(execId: ExecId, times = 1): Promise<Exit> {
    for (;;) {
      const exit = this.exits.get(execId)?.[times - 1];
      if (exit) return exit;
      await new Promise<void>((resolve) => this.#onExit.push(resolve));
    }
  }

  async run(argv: string[], options: Partial<StartRequest> = {}): Promise<Exit> {
    const request = this.request(argv, options);
    await this.client.start(request);
    return this.ended(request.execId);
  }
}

const output = (stand: Stand, { execId }: { execId: ExecId }, suffix = '.out'): string => readFileSync(join(stand.execDir, `${execId}${suffix}`), 'utf8');
const shell = (text: string): string[] => ['/bin/sh', '-c', text];

describe('commands', () => {
  let stand: Stand;
  let edge: Edge;
  beforeAll(async () => {
    stand = await startAether();
    edge = await Edge.connect(stand);
  });
  afterAll(async () => {
    edge.client.close();
    await stand.stop();
  });
  const say = async (text: string, options: Partial<StartRequest> = {}): Promise<string> => output(stand, await edge.run(shell(text), options));

  test('run as the user that is named, with that user’s surroundings', async () => {
    expect(await say('id -u; id -g; id -G; pwd; echo $HOME $USER $LOGNAME')).toBe('0\n0\n0\n/\n/root root root\n');
    expect(await say('id -u; id -g; echo $HOME $USER', { user: 'daemon', cwd: '/usr' })).toBe('1\n1\n/usr/sbin daemon\n');
    expect(await say('id -u; id -g; id -G', { user: '1' })).toBe('1\n1\n1\n');
    expect(await say('id -u; id -g; id -G; echo $HOME; env | grep -c USER', { user: '12345:99' })).toBe('12345\n99\n99\n/\n0\n');
    expect(await say('echo $HOME $PATH $EXTRA', { env: { HOME: '/else', PATH: '/bin', EXTRA: 'a=b c' } })).toBe('/else /bin a=b c\n');
    expect(await say('echo again > /dev/stdout', { user: 'daemon' })).toBe('again\n');
  });

  test('inherit nothing from PID 1', async () => {
    expect(await say('ls /proc/self/fd | wc -l; ulimit -Sn; ulimit -c; umask')).toBe('4\n1024\n0\n0022\n'); // the fourth is the listing's own
    expect(await say('env | cut -d= -f1 | sort | tr "\\n" " "')).toBe('HOME LOGNAME PATH PWD USER ');
    expect(await say('grep -E "^(Sig(Blk|Ign)|NoNewPrivs|Seccomp):" /proc/self/status | tr -d "\\t" | tr "\\n" " "', { user: 'daemon' })).toBe(
      'SigBlk:0000000000000000 SigIgn:0000000000000000 NoNewPrivs:0 Seccomp:2 ',
    );
    expect(await say('ps -o sid= -p $$ | tr -d " "; echo $$').then((text) => new Set(text.trim().split('\n')).size)).toBe(1);
  });

  test('hold Docker’s capabilities without packet sockets, and no more system calls than its profile', async () => {
    expect(await say('grep -E "^Cap(Inh|Prm|Eff|Bnd|Amb):" /proc/self/status | tr -d "\\t" | tr "\\n" " "')).toBe(
      'CapInh:0000000000000000 CapPrm:00000000a80405fb CapEff:00000000a80405fb CapBnd:00000000a80405fb CapAmb:0000000000000000 ',
    );
    expect(await say('grep -E "^Cap(Prm|Eff):" /proc/self/status | tr -d "\\t" | tr "\\n" " "', { user: 'daemon' })).toBe(
      'CapPrm:0000000000000000 CapEff:0000000000000000 ',
    );
    for (const refused of ['unshare -U true', 'unshare -n true', 'mount -t tmpfs none /mnt', 'chroot / unshare -m true', 'hostname other']) {
      expect([refused, (await edge.run(shell(`${refused} 2>/dev/null`))).waitStatus]).not.toEqual([refused, 0]);
    }
  });

  test('can neither look into PID 1 nor end it', async () => {
    expect(
      await say('kill -KILL 1; kill -TERM 1; ls /proc/1/fd /proc/1/cwd/ 2>&1 | grep -c denied; cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c'),
    ).toBe('2\n0\n');
    await edge.client.ping();
  });

  test('that cannot start say why, and leave nothing', async () => {
    const files = readdirSync(stand.execDir).length;
    const start = (argv: string[], options: Partial<StartRequest> = {}): Promise<unknown> => edge.client.start(edge.request(argv, options));
    await expect(start(['/no/such'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND', details: { errno: 'ENOENT' } });
    await expect(start(['no-such'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    await expect(start(['sh'], { env: { PATH: '/nowhere' } })).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    await expect(start(['/etc/passwd'])).rejects.toMatchObject({ code: 'COMMAND_NOT_EXECUTABLE', details: { errno: 'EACCES' } });
    await expect(start(['/usr'])).rejects.toMatchObject({ code: 'COMMAND_NOT_EXECUTABLE' });
    await expect(start(['true'], { user: 'nosuchuser' })).rejects.toMatchObject({ code: 'USER_NOT_FOUND' });
    await expect(start(['true'], { user: '70000' })).rejects.toMatchObject({ code: 'USER_NOT_FOUND' });
    await expect(start(['true'], { cwd: '/no/such/dir' })).rejects.toMatchObject({ code: 'CWD_NOT_FOUND' });
    await expect(start(['true', 'x'.repeat(200_000)])).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    await expect(start(['true', 'x'.repeat(2_000_000)])).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    expect(readdirSync(stand.execDir)).toHaveLength(files);
    expect(stand.commandGroups()).toEqual([]);
    expect(await say('ps -e -o stat= | grep -c Z')).toBe('0\n');
  });

  test('are started once per id', async () => {
    const request = edge.request(shell('echo once'));
    const starts = await Promise.all([edge.client.start(request), edge.client.start(request), edge.client.start({ ...request, argv: ['false'] })]);
    expect(starts.map(({ known }) => known)).toEqual([false, true, true]);
    await edge.ended(request.execId);
    expect(await edge.client.start(request)).toEqual({ known: true });
    expect(output(stand, request)).toBe('once\n');
  });

  test('that print for ever do not hold up their end, nor anybody else', async () => {
    const exit = await edge.run(shell('yes & yes >&2 & sleep 1'), { outputLimitBytes: 100_000 });
    expect(exit).toMatchObject({ pipesOpen: true, stdout: { storedBytes: 100_000 }, stderr: { storedBytes: 100_000 } });
    expect(await say('echo fine')).toBe('fine\n');
    expect(await edge.client.signal(exit.execId, 9, true)).toBe(true);
    const last = await edge.ended(exit.execId, 2);
    expect(last).toMatchObject({ pipesOpen: false, waitStatus: 0, stdout: { storedBytes: 100_000 } });
    expect(last.stdout.totalBytes).toBeGreaterThan(exit.stdout.totalBytes);
    expect(await edge.client.query(exit.execId)).toEqual({ state: 'ended', exit: last });
  });

  test('without space for their logs go on, and say that bytes are missing', async () => {
    execFileSync('prlimit', ['--pid', String(stand.pid), '--fsize=4096:unlimited']);
    const exit = await edge.run(shell('seq 1 20000; exit 5'));
    execFileSync('prlimit', ['--pid', String(stand.pid), '--fsize=unlimited']);
    expect(exit).toMatchObject({ waitStatus: 5 << 8, stdout: { totalBytes: 108_894, storedBytes: 4096 } });
  });

  test('give back what they took: descriptors, memory, groups', async () => {
    const measure = (): { fds: number; rssKiB: number } => ({
      fds: readdirSync(`/proc/${stand.pid}/fd`).length,
      rssKiB: Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${stand.pid}/status`, 'utf8'))?.[1]),
    });
    const round = async (): Promise<void> => {
      const runs = Array.from({ length: 200 }, (_, i) =>
        edge.run(shell(`echo ${i}; echo ${i} >&2; exit ${i % 100}`), { stdin: 'bytes', stdinBytes: Buffer.alloc(1000) }),
      );
      expect((await Promise.all(runs)).map(({ waitStatus }) => waitStatus >> 8)).toEqual(Array.from({ length: 200 }, (_, i) => i % 100));
    };
    await round();
    const before = measure();
    for (let i = 0; i < 5; i += 1) await round();
    const after = measure();
    expect(after.fds).toBe(before.fds);
    expect(after.rssKiB).toBeLessThanOrEqual(before.rssKiB + 16);
    expect(stand.commandGroups()).toEqual([]);
  });
});

describe('the channel', () => {
  let stand: Stand;
  beforeAll(async () => {
    stand = await startAether();
  });
  afterAll(() => stand.stop());

  const dial = async (): Promise<Socket> => {
    const socket = await connectUnix(stand.socketPath);
    socket.on('error', () => undefined);
    return socket;
  };
  const frame = (type: number, id: number, body: Buffer, length = body.byteLength): Buffer => {
    const header = Buffer.alloc(16);
    header.writeUInt32LE(length, 0);
    header.writeUInt16LE(type, 4);
    header.writeUInt32LE(id, 8);
    return Buffer.concat([header, body]);
  };

  test.each([
    ['no such type', frame(999, 1, Buffer.alloc(0))],
    ['id 0', frame(1, 0, Buffer.alloc(0))],
    ['a length beyond the limit', frame(2, 1, Buffer.alloc(0), 2 ** 31)],
    ['a path as exec id', frame(5, 1, Buffer.from('exec=../../../../etc/shadow\0'))],
    ['no end of pairs', frame(2, 1, Buffer.from('exec=ex-0123456789abcdef01234567'))],
    ['an answer', frame(66, 1, Buffer.alloc(16))],
  ])('%s ends its connection and nothing else', async (_, bytes) => {
    const bystander = await Edge.connect(stand);
    const socket = await dial();
    const answered: Buffer[] = [];
    socket.on('data', (chunk) => answered.push(chunk));
    socket.write(bytes);
    await once(socket, 'close');
    expect(Buffer.concat(answered).readUInt16LE(4)).toBe(71);
    await bystander.client.ping();
    bystander.client.close();
  });

  test('noise does not end PID 1', async () => {
    let random = 1;
    const next = (): number => {
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
      return random >>> 8;
    };
    for (let round = 0; round < 300; round += 1) {
      const socket = await dial();
      const body = Buffer.from(Array.from({ length: next() % 60 }, () => next()));
      socket.write(
        Buffer.concat(Array.from({ length: 1 + (next() % 5) }, () => frame(next() % 8, next() % 3, body, next() % 4 === 0 ? next() : body.byteLength))),
      );
      socket.destroy();
    }
    const edge = await Edge.connect(stand);
    expect((await edge.run(['true'])).waitStatus).toBe(0);
    edge.client.close();
  });

  test('the newest connection hears of ends, and the oldest is dropped beyond eight', async () => {
    const edges: Edge[] = [];
    for (let i = 0; i < 9; i += 1) {
      const edge = await Edge.connect(stand);
      await edge.client.ping(); // connected is not yet accepted
      edges.push(edge);
    }
    const [oldest, second] = edges;
    const newest = edges.at(-1);
    if (!oldest || !second || !newest) throw new Error('nine edges');
    expect(await oldest.closed).toBeInstanceOf(Error);
    const request = second.request(['true']);
    await second.client.start(request);
    expect((await newest.ended(request.execId)).waitStatus).toBe(0);
    expect(second.exits.size).toBe(0);
    for (const edge of edges) edge.client.close();
  });

  test('a reader that stays away is waited for, and hears everything', async () => {
    const socket = await dial();
    socket.pause();
    const count = 4_000;
    socket.write(Buffer.concat(Array.from({ length: count }, (_, i) => frame(5, i + 1, Buffer.from('exec=ex-0123456789abcdef01234567\0')))));
    const edge = await Edge.connect(stand);
    await edge.client.ping();
    edge.client.close();
    let bytes = 0;
    socket.resume();
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes >= count * 16) break;
    }
    expect(bytes).toBe(count * 16);
  });
});

test('without a v2 tree a time-out ends what /proc shows of the tree', async () => {
  const stand = await startAether({ cgroups: 'none' });
  const edge = await Edge.connect(stand);
  const exit = await edge.run(shell('trap "" TERM; echo partial; (exec sleep 98771) & setsid sleep 98772 & sleep 98773'), { timeoutMs: 2_000 });
  expect(exit).toMatchObject({ reason: 'timeout', waitStatus: 9, pipesOpen: false });
  expect(output(stand, exit)).toBe('partial\n');
  expect(output(stand, await edge.run(shell('pgrep -f "sleep 9877[1-3]" | grep -vc $$')))).toBe('0\n');
  edge.client.close();
  await stand.stop();
});

test('processes beyond the sandbox’s limit are refused to the command, and the agent goes on', async () => {
  const stand = await startAether({ pids: 12 });
  const edge = await Edge.connect(stand);
  const bomb = await edge.run(shell('for i in $(seq 30); do sleep 65 & done'), { timeoutMs: 20_000 });
  expect([output(stand, bomb, '.err'), bomb.waitStatus >> 8]).toEqual([expect.stringContaining('annot fork'), 2]);
  await edge.client.ping();
  expect(await edge.client.signal(bomb.execId, 9, true)).toBe(true);
  expect((await edge.ended(bomb.execId, 2)).pipesOpen).toBe(false);
  expect((await edge.run(['true'])).waitStatus).toBe(0);
  edge.client.close();
  await stand.stop();
});

test('a life is moved while it runs, later and earlier', async () => {
  const stand = await startAether({ lifeSeconds: 2 });
  const edge = await Edge.connect(stand);
  await edge.client.setLife(600);
  expect((await edge.run(shell('sleep 2.5; echo past the old end'))).waitStatus).toBe(0);
  await edge.client.setLife(1);
  await stand.ended;
  expect(await edge.closed).toBeInstanceOf(Error);
  await stand.stop();
});

test('a life that is over ends the sandbox, Edge or no Edge', async () => {
  const stand = await startAether({ lifeSeconds: 1 });
  const edge = await Edge.connect(stand);
  await edge.client.start(edge.request(['sleep', '66']));
  expect(await edge.closed).toBeInstanceOf(Error);
  await stand.ended;
  await stand.stop();
});
