/** `dsec snapshot`, `dsec fork`, `dsec run @NAME`, `dsec image export|build --oci|promote` as a shell uses them. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '#runtime/project-root.ts';
import { type FilesStand, inside, startFilesStand } from '#test/helpers/files.ts';

let stand: FilesStand;

beforeAll(async () => {
  stand = await startFilesStand();
  await inside(stand.box, 'echo one > /w/state; echo secret > /root/.bash_history');
});
afterAll(() => stand?.close());

type Ended = { readonly code: number; readonly out: string; readonly err: string };

const shell = (script: string): Promise<Ended> =>
  new Promise((resolve) => {
    const { host, box } = stand;
    const own = {
      DSEC_CONTEXT: host.platform.contextFile,
      DSEC_DATA_DIR: join(host.dir, 'data'),
      ID: box.id,
      DSEC: `${process.execPath} ${join(projectRoot(), 'build/dsec.mjs')}`,
    };
    execFile('bash', ['-c', script], { cwd: host.dir, env: { ...process.env, ...own } }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });

test('a snapshot is made, listed, run and removed', async () => {
  const made = await shell('$DSEC snapshot $ID --name cli --scrub');
  expect([made.code, made.out]).toEqual([0, 'cli\n']);
  expect(made.err).toMatch(/files.*stored.*stood still for \d+ ms.*left out \/root\/\.bash_history/s);
  expect((await shell('$DSEC snapshot ls')).out).toMatch(new RegExp(`cli .*${stand.box.id}`));
  expect(JSON.parse((await shell('$DSEC snapshot ls --json --sandbox $ID')).out)).toMatchObject({ id: 'cli', sandboxId: stand.box.id });
  expect(await shell("$DSEC run @cli -- sh -c 'cat /w/state; ls -A /root'")).toMatchObject({ code: 0, out: 'one\n' });
  expect((await shell('$DSEC snapshot $ID --name Bad/Name')).code).toBe(2);
});

test('it goes out as an OCI image, comes back, and its layer gets a name of its own', async () => {
  const ended = await shell(
    '$DSEC image export @default/cli cli.tar --oci tar >&2 && $DSEC image build cli-back --oci cli.tar >&2 && $DSEC image promote @default/cli cli-layer >&2 && $DSEC run cli-back -- cat /w/state && $DSEC run -w cli-layer small -- cat /w/state',
  );
  expect([ended.code, ended.out, ended.code === 0 ? '' : ended.err]).toEqual([0, 'one\none\n', '']);
  expect((await shell('$DSEC image export @default/cli cli.tar --oci tar')).code).toBe(3);
});

test('forks print their ids, and are told apart by labels', async () => {
  const forked = await shell('$DSEC fork $ID -n 3 --label try=2');
  expect(forked.code).toBe(0);
  const ids = forked.out.trim().split('\n');
  expect(ids).toHaveLength(3);
  expect((await shell('$DSEC ls --label try=2 --json')).out.trim().split('\n')).toHaveLength(3);
  expect(await shell(`$DSEC exec ${ids[0]} -- cat /w/state /root/.bash_history`)).toMatchObject({ code: 0, out: 'one\nsecret\n' });
  expect((await shell(`$DSEC stop ${ids.join(' ')}`)).code).toBe(0);
  expect((await shell('$DSEC fork $ID -n 0')).code).toBe(2);
});

test('a removed name starts nothing more', async () => {
  expect(await shell('$DSEC snapshot rm cli')).toMatchObject({ code: 0, out: 'cli\n' });
  expect((await shell('$DSEC snapshot rm cli')).code).toBe(5);
  expect((await shell('$DSEC run @cli')).code).toBe(5);
});
