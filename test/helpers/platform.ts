/** A whole platform for a test or a benchmark, in directories of its own, with a small base layer; leaves nothing. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { PosixLayerStore } from '#adapters/layers/posix/mod.ts';
import { type Config, type ConfigInput, loadConfig, pathsOf } from '#runtime/config.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { createLog, type LogLevel } from '#runtime/log/log.ts';
import { runDirNamed } from '#runtime/run-directory.ts';
import { type Platform, startPlatform } from '#runtime/roles/up/platform.ts';

/** Programs of the small base layer: one static busybox under many names. */
const APPLETS = [
  'sh',
  'true',
  'false',
  'cat',
  'echo',
  'ls',
  'sleep',
  'seq',
  'head',
  'tail',
  'tr',
  'wc',
  'grep',
  'sha256sum',
  'awk',
  'printf',
  'kill',
  'setsid',
  'touch',
  'chmod',
  'mkdir',
  'rm',
  'id',
  'env',
  'pwd',
  'ps',
  'dd',
  'yes',
  'date',
  'hostname',
  'mount',
  'nohup',
  'sed',
  'stat',
  'find',
  'sort',
  'cp',
  'ln',
  'mknod',
  'test',
];

/** Makes the root file system that the small base layer holds. */
export const makeBusyboxRoot = (dir: string): void => {
  for (const sub of ['bin', 'etc', 'root', 'tmp', 'var', 'usr', 'w', 'proc', 'sys', 'dev']) mkdirSync(join(dir, sub), { recursive: true });
  cpSync('/bin/busybox', join(dir, 'bin/busybox'));
  for (const applet of APPLETS) symlinkSync('busybox', join(dir, 'bin', applet));
  symlinkSync('../bin', join(dir, 'usr/bin'));
  writeFileSync(join(dir, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/w:/bin/sh\n');
  writeFileSync(join(dir, 'etc/group'), 'root:x:0:\nagent:x:1000:\n');
};

export type TestPlatform = {
  /** The one that runs now. */
  readonly platform: Platform;
  readonly dir: string;
  readonly logFile: string;
  readonly store: PosixLayerStore;
  /** Ends every process of the platform, lets time pass, and starts it on the same directories, with other settings if need be; sandboxes go on meanwhile. */
  restart(meanwhile?: () => Promise<unknown>, overrides?: Partial<ConfigInput>): Promise<void>;
  /** Ends everything and removes every file. */
  close(): Promise<void>;
};

/** `overrides` go to the configuration; `restartMaxMs` is the longest pause before a role that died is started again. */
export type TestPlatformOptions = { readonly overrides?: Partial<ConfigInput>; readonly logLevel?: LogLevel; readonly restartMaxMs?: number };

/** Starts a platform with the layer `small`. */
export const startTestPlatform = async (options: TestPlatformOptions = {}): Promise<TestPlatform> => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-t-'));
  const runDir = runDirNamed(basename(dir));
  const logFile = join(dir, 'roles.log');
  const level = options.logLevel ?? 'info';
  const config = loadConfig({
    flags: { dataDir: join(dir, 'data'), runDir, edgeName: 'node-1' as ConfigInput['edgeName'], logLevel: level, ...options.overrides },
  });
  const store = new PosixLayerStore({ dir: pathsOf(config).layers });
  makeBusyboxRoot(join(dir, 'root'));
  await buildLayer(store, { name: 'small', kind: 'base', source: { type: 'directory', path: join(dir, 'root') } });
  const start = (changed: Partial<ConfigInput> = {}) =>
    startPlatform({
      config: { ...config, ...changed } as Config,
      log: createLog('up', options.logLevel === 'error' ? 'error' : 'warn'),
      logFile,
      restartMaxMs: options.restartMaxMs,
    });
  let platform = await start();
  return {
    get platform() {
      return platform;
    },
    dir,
    logFile,
    store,
    restart: async (meanwhile = async () => undefined, overrides = {}) => {
      await platform.closeKeepingSandboxes();
      await meanwhile();
      platform = await start(overrides);
    },
    close: async () => {
      await platform.close();
      for (const left of [dir, runDir]) rmSync(left, { recursive: true, force: true });
    },
  };
};
