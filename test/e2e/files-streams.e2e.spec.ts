/** Streams: what dies in the middle, what is asked twice, what happens while somebody watches; and that nothing stays behind. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FileEvent, FileWatch, Sandbox } from '#sdk/mod.ts';
import { type FilesStand, inside, startFilesStand } from '#test/helpers/files.ts';
import { refusal } from '#test/helpers/refusal.ts';

let stand: FilesStand;
let box: Sandbox;

beforeAll(async () => {
  stand = await startFilesStand({ memoryLimitMb: 128 });
  box = stand.box;
});
afterAll(() => stand?.close());

/** Workers of files that live in the sandbox: processes of the agent's name that are not the agent. */
const WORKERS = "$(busybox ps -o pid,comm | busybox awk '$1 > 1 && /aether/ {print $1}')";
const workers = async (): Promise<number> => (await inside(box, `echo ${WORKERS}`)).trim().split(/\s+/).filter(Boolean).length;
const temporary = (dir: string): Promise<string> => inside(box, `ls -A ${dir} | grep '^[.]dsec-' || true`);

/** A source that stops in the middle until it is told to go on. */
const haltingSource = (chunks: number) => {
  let reached = () => {};
  let go = () => {};
  const halfway = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const released = new Promise<void>((resolve) => {
    go = resolve;
  });
  async function* source() {
    for (let i = 0; i < chunks; i += 1) {
      if (i === chunks / 2) {
        reached();
        await released;
      }
      yield Buffer.alloc(262_144, i);
    }
  }
  return { source: source(), halfway, go: () => go() };
};

describe('the Edge dies', () => {
  test('in the middle of an upload: a typed error, the old file as it was, nothing left; the next one works', async () => {
    await box.files.write('/w/precious', 'OLD');
    const { source, halfway, go } = haltingSource(40);
    const upload = refusal(box.files.write('/w/precious', source));
    await halfway;
    process.kill(stand.host.platform.pids().edge as number, 'SIGKILL');
    go();
    const error = await upload;
    expect(error).toMatchObject({ code: 'FILE_SESSION_LOST', retry: 'later' });
    expect(await box.files.readText('/w/precious')).toBe('OLD');
    expect(await temporary('/w')).toBe('');
    await box.files.write('/w/precious', randomBytes(1_000_000));
    expect((await box.files.stat('/w/precious')).size).toBe(1_000_000);
  });

  test('in the middle of a download and of a watch: typed errors', async () => {
    await inside(box, 'dd if=/dev/zero of=/w/large bs=1M count=32 2>/dev/null');
    const watch = await box.files.watch('/w');
    const stream = await box.files.stream('/w/large');
    const reading = refusal(
      (async () => {
        let first = true;
        for await (const _ of stream) {
          if (first) process.kill(stand.host.platform.pids().edge as number, 'SIGKILL');
          first = false;
        }
      })(),
    );
    const watching = refusal(firstOf(watch));
    expect((await reading).code).toBe('FILE_SESSION_LOST');
    expect((await watching).code).toBe('FILE_SESSION_LOST');
    await box.files.remove('/w/large');
  });
});

describe('the other side goes', () => {
  test('a reader that leaves, a writer that gives up: their workers end and nothing is left', async () => {
    await inside(box, 'dd if=/dev/zero of=/w/large bs=1M count=64 2>/dev/null');
    for await (const _ of await box.files.stream('/w/large')) break;
    const abort = new AbortController();
    const { source, halfway, go } = haltingSource(40);
    const upload = refusal(box.files.write('/w/given-up', source, { signal: abort.signal }));
    await halfway;
    abort.abort();
    go();
    expect((await upload).code).toBe('CANCELLED');
    await expect.poll(workers, { timeout: 20_000 }).toBe(0);
    expect(await temporary('/w')).toBe('');
    expect(await box.files.exists('/w/given-up')).toBe(false);
    await box.files.remove('/w/large');
  });

  test('a source that fails is the caller’s error, and the old file stays', async () => {
    await box.files.write('/w/stays', 'OLD');
    async function* failing() {
      yield Buffer.alloc(300_000);
      throw new RangeError('the source broke');
    }
    await expect(box.files.write('/w/stays', failing())).rejects.toThrow('the source broke');
    expect(await box.files.readText('/w/stays')).toBe('OLD');
  });

  test('a worker that is killed inside is an error of its own; a stopped one is not waited for by others', async () => {
    const { source, halfway, go } = haltingSource(40);
    const upload = refusal(box.files.write('/w/victim', source));
    await halfway;
    await inside(box, `for p in ${WORKERS}; do kill -KILL $p; done`);
    go();
    expect((await upload).code).toBe('FILE_FAILED');
    const watch = await box.files.watch('/w');
    await inside(box, `for p in ${WORKERS}; do kill -STOP $p; done`);
    await box.files.write('/w/alive', 'x');
    expect(await box.files.readText('/w/alive')).toBe('x');
    watch.close();
  });

  test('a tree that is removed while it is read ends, and so does one that grows', async () => {
    await inside(box, 'mkdir /w/moving; cd /w/moving; for i in 1 2 3 4 5 6 7 8; do mkdir d$i; (cd d$i; seq 1 300 | busybox xargs touch); done');
    const churn = await box.start('cd /w/moving; while :; do rm -rf d1 d2; mkdir d1 d2; echo x > d1/a; echo y > d2/b; busybox mv d1/a d2/c; done');
    for (let round = 0; round < 5; round += 1) {
      const tar = await box.files.tar('/w/moving');
      for await (const _ of tar);
      expect(tar.end?.entries).toBeGreaterThan(1);
    }
    await churn.kill();
    await box.files.remove('/w/moving', { recursive: true });
  });
});

describe('many at a time', () => {
  test('more streams than a sandbox may have wait their turn; short calls go on meanwhile', async () => {
    const content = randomBytes(700_000);
    const uploads = Array.from({ length: 40 }, (_, i) => box.files.write(`/w/many-${i}`, content));
    expect((await box.files.stat('/w')).type).toBe('directory');
    await Promise.all(uploads);
    const downloads = await Promise.all(Array.from({ length: 40 }, (_, i) => box.files.read(`/w/many-${i}`)));
    expect(downloads.every((bytes) => content.equals(bytes))).toBe(true);
    await inside(box, 'rm /w/many-*');
  });

  test('a hundred short calls at once, under names of their own', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, i) => box.files.write(`/w/short-${i}`, `content ${i}`)));
    const texts = await Promise.all(Array.from({ length: 100 }, (_, i) => box.files.readText(`/w/short-${i}`)));
    expect(texts).toEqual(Array.from({ length: 100 }, (_, i) => `content ${i}`));
    await inside(box, 'rm /w/short-*');
  });
});

const firstOf = async (watch: FileWatch): Promise<FileEvent | undefined> => {
  for await (const event of watch) return event;
  return undefined;
};

/** Events until one that `ends` the collection. */
const until = async (watch: FileWatch, ends: (event: FileEvent) => boolean): Promise<string[]> => {
  const seen: string[] = [];
  for await (const event of watch) {
    seen.push(`${event.kind} ${event.name}${event.isDirectory ? '/' : ''}`);
    if (ends(event)) break;
  }
  return seen;
};

describe('watching', () => {
  test('a directory: from the moment the watch is there', async () => {
    await inside(box, 'mkdir /w/seen');
    const watch = await box.files.watch('/w/seen');
    await inside(box, 'cd /w/seen; echo 1 > a; busybox mv a b; chmod 600 b; mkdir d; echo 2 > d/unseen; rm b; echo > end');
    expect(await until(watch, ({ name }) => name === 'end')).toEqual([
      'created a',
      'modified a',
      'moved-from a',
      'moved-to b',
      'attributes b',
      'created d/',
      'removed b',
      'created end',
    ]);
  });

  test('a whole tree, with what is made and moved in it', async () => {
    await inside(box, 'mkdir -p /w/deepseen/x/y');
    const watch = await box.files.watch('/w/deepseen', { recursive: true });
    const events = watch[Symbol.asyncIterator]();
    const seen: string[] = [];
    const untilSeen = async (last: string): Promise<void> => {
      while (!seen.includes(last)) {
        const { value } = await events.next();
        seen.push(`${value.kind} ${value.name}${value.isDirectory ? '/' : ''}`);
      }
    };
    await inside(box, 'cd /w/deepseen; echo 1 > x/y/f; mkdir -p new/er; echo 2 > new/er/g');
    for (const event of ['created x/y/f', 'created new/', 'created new/er/', 'created new/er/g']) await untilSeen(event);
    await inside(box, 'cd /w/deepseen; busybox mv x z; echo 3 > z/y/h; rm -r new');
    for (const event of ['moved-from x/', 'moved-to z/', 'created z/y/h', 'removed new/er/g', 'removed new/er/', 'removed new/']) await untilSeen(event);
    watch.close();
  });

  test('a file, and its end', async () => {
    await box.files.write('/w/one', 'x');
    const watch = await box.files.watch('/w/one');
    await inside(box, 'echo y >> /w/one; rm /w/one');
    const seen: string[] = [];
    for await (const { kind } of watch) seen.push(kind);
    expect([seen[0], seen.at(-1)]).toEqual(['modified', 'removed']);
  });

  test('more than is kept is told as such', async () => {
    await inside(box, 'mkdir /w/flood');
    const watch = await box.files.watch('/w/flood');
    const longName = 'n'.repeat(200); // so that few events fill what lies between the kernel's queue and the reader
    await inside(box, `cd /w/flood; seq 1 16000 | sed 's/^/${longName}/' | busybox xargs touch; busybox find . -type f | busybox xargs rm; echo > end`);
    const seen = await until(watch, ({ kind, name }) => kind === 'overflow' || name === 'end');
    expect(seen).toContain('overflow ');
  });

  test('nothing there to watch', async () => {
    expect((await refusal(box.files.watch('/w/nothing'))).code).toBe('FILE_NOT_FOUND');
  });
});
