/** The published package stands alone: packed, unpacked elsewhere, imported by plain Node, typed for its users. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNatsServer } from '#test/helpers/nats-server.ts';
import { FakePlatform } from './testing/fake-platform.ts';
import { PROJECT } from './testing/records.ts';

const run = promisify(execFile);
const here = join(import.meta.dirname, 'npm');
const modules = join(here, '../../node_modules');
let dir: string;
let installed: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dsec-pack-'));
  const environment = { ...process.env, npm_config_offline: 'true', npm_config_update_notifier: 'false', npm_config_cache: join(dir, 'npm-cache') };
  await run('npm', ['pack', '--pack-destination', dir], { cwd: here, env: environment });
  const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz')) ?? '';
  installed = join(dir, 'node_modules/@dsec/sdk');
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', join(dir, tarball), '-C', installed, '--strip-components=1']);
  for (const name of ['@nats-io/transport-node', '@opentelemetry/api', 'zod', '@types/node']) link(name);
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
});
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
  rmSync(join(here, 'dist'), { recursive: true, force: true });
});

/** As an installation would place it; its own dependencies are found beside its real path. */
const link = (name: string): void => {
  mkdirSync(dirname(join(dir, 'node_modules', name)), { recursive: true });
  symlinkSync(join(modules, name), join(dir, 'node_modules', name));
};

test('it holds code, declarations, manual and licence, and nothing native', () => {
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
  expect(files).toEqual(
    expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'dist/sdk.mjs', 'dist/types/sdk/mod.d.ts', 'dist/types/bus-schemas/errors.d.ts']),
  );
  expect(files.filter((name) => /\.(node|so|c|ts)$/.test(name) && !name.endsWith('.d.ts'))).toEqual([]);
  const code = readFileSync(join(installed, 'dist/sdk.mjs'), 'utf8');
  const outside = [...code.matchAll(/^(?:import|\}) .*from "([^"]+)";$/gm)].map(([, name]) => name ?? '').filter((name) => !name.startsWith('node:'));
  expect(new Set(outside)).toEqual(new Set(['@nats-io/transport-node', '@opentelemetry/api', 'zod']));
});

test('plain Node runs the session of the paper with it', async () => {
  const server = await startNatsServer();
  const platform = await FakePlatform.start(server.url);
  try {
    const session = `
      import { connect } from '@dsec/sdk';
      const dsec = await connect({ servers: ['${server.url}'], project: '${PROJECT}' });
      const box = await dsec.runContainer({ image: 'debian', memoryLimitMb: 4096 }, { timeoutMs: 20_000 });
      const result = await box.runShell('echo hello world');
      process.stdout.write(result.stdout + (await box.stop()).status);
      await dsec.close();`;
    writeFileSync(join(dir, 'session.js'), session);
    expect((await run(process.execPath, ['session.js'], { cwd: dir })).stdout).toBe('hello world\nstopped');
  } finally {
    await platform.stop();
    await server.stop();
  }
});

test('its declarations type a user’s program', async () => {
  const program = `
    import { connect, type ExecResult, type DsecError } from '@dsec/sdk';
    const dsec = await connect();
    const box = await dsec.runContainer({ image: 'debian', cpuCoresLimit: 4 });
    const result: ExecResult = await box.exec(['true']);
    export const code: number | null = result.exitCode;
    export const fault = (error: DsecError): 'agent' | 'environment' | 'infra' | 'policy' | 'preempted' => error.fault;
    // @ts-expect-error an option that does not exist
    await dsec.runContainer({ image: 'debian', memory: 4 });
    // @ts-expect-error not a text
    export const wrong: string = result.exitCode;
    for await (const commit of box.events()) commit.version.toFixed();`;
  writeFileSync(join(dir, 'program.ts'), program);
  const options = [
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--lib',
    'es2023,esnext.disposable',
    '--strict',
    '--noEmit',
    '--types',
    'node',
    '--skipLibCheck',
    'false',
  ];
  const { stdout } = await run(join(modules, '.bin/tsc'), [...options, '--ignoreConfig', 'program.ts'], { cwd: dir }).catch(
    (failed: { stdout: string }) => failed,
  );
  expect(stdout).toBe('');
});
