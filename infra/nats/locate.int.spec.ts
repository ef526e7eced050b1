import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isAtLeast, locateNatsServer } from './locate.ts';

describe('locateNatsServer', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'dsec-locate-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const program = async (directory: string, version: string): Promise<string> => {
    await mkdir(join(root, directory), { recursive: true });
    const path = join(root, directory, 'nats-server');
    await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
    await chmod(path, 0o755);
    return path;
  };

  test('takes the one on PATH when it is new enough', async () => {
    const path = await program('bin', '2.14.0');
    await program('.cache/bin', '2.15.1');
    expect(await locateNatsServer({ env: { PATH: join(root, 'bin') }, projectRoot: root })).toEqual({ path, version: '2.14.0' });
  });

  test('passes over one on PATH that is too old', async () => {
    await program('bin', '2.9.10');
    const path = await program('.cache/bin', '2.15.1');
    expect(await locateNatsServer({ env: { PATH: join(root, 'bin') }, projectRoot: root })).toEqual({ path, version: '2.15.1' });
  });

  test('says what it found and what to run when there is none', async () => {
    await program('bin', '2.9.10');
    await expect(locateNatsServer({ env: { PATH: join(root, 'bin') }, projectRoot: root })).rejects.toMatchObject({
      code: 'HOST_UNFIT',
      message: expect.stringMatching(/is 2\.9\.10.*infra\/setup/),
    });
  });

  test('a program named by the variable is taken or refused, never replaced', async () => {
    await program('.cache/bin', '2.15.1');
    const old = await program('old', '2.10.0');
    await expect(locateNatsServer({ env: { DSEC_NATS_SERVER: old }, projectRoot: root })).rejects.toMatchObject({ code: 'BUS_TOO_OLD' });
    await expect(locateNatsServer({ env: { DSEC_NATS_SERVER: join(root, 'none') }, projectRoot: root })).rejects.toMatchObject({ code: 'HOST_UNFIT' });
  });

  test('compares versions by number', () => {
    expect(isAtLeast('2.14.0', '2.14.0')).toBe(true);
    expect(isAtLeast('2.9.99', '2.14.0')).toBe(false);
    expect(isAtLeast('2.14.0-RC.1', '2.14.0')).toBe(true);
    expect(isAtLeast('3.0.0', '2.14.0')).toBe(true);
  });
});
