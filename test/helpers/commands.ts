/** Small things that tests of commands share. */
import { join } from 'node:path';
import { buildLayer } from '#runtime/images/mod.ts';
import { copyProgram } from '#test/helpers/dynamic-programs.ts';
import { type Command, connect, type DsecClient, type RunOptions, type Sandbox } from '#sdk/mod.ts';
import { makeBusyboxRoot, startTestPlatform, type TestPlatform } from '#test/helpers/platform.ts';

export const timed = async <T>(work: Promise<T>): Promise<{ readonly ms: number; readonly value: T }> => {
  const startedAt = performance.now();
  const value = await work;
  return { ms: performance.now() - startedAt, value };
};

/** Keeps `width` of `times` pieces of work under way. */
export const inParallel = async <T>(width: number, times: number, work: (index: number) => Promise<T>): Promise<T[]> => {
  const results: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < times) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
};

/** What a program says first, which is how it tells that it is up. */
export const firstLine = async (command: Command): Promise<string> => {
  for await (const piece of command.stdout.text()) return piece.trim();
  throw new Error('it ended without a word');
};

/** Layer `with-gnu`: the small base with this host's bash, and its head, tr and nohup before busybox's. */
export const buildGnuLayer = async (host: TestPlatform): Promise<void> => {
  const root = join(host.dir, 'with-gnu');
  makeBusyboxRoot(root);
  copyProgram(root, '/bin/bash');
  for (const program of ['head', 'tr', 'nohup']) copyProgram(root, `/usr/bin/${program}`, `/usr/local/bin/${program}`);
  await buildLayer(host.store, { name: 'with-gnu', kind: 'base', source: { type: 'directory', path: root } });
};

export type CommandsStand = { readonly host: TestPlatform; readonly dsec: DsecClient; readonly box: Sandbox; close(): Promise<void> };

/** A platform with one sandbox of `with-gnu`. */
export const startCommandsStand = async (options: Partial<RunOptions> = {}): Promise<CommandsStand> => {
  const host = await startTestPlatform();
  await buildGnuLayer(host);
  const dsec = await connect({ contextFile: host.platform.contextFile });
  const box = await dsec.runContainer({ image: 'with-gnu', ...options });
  const close = async (): Promise<void> => {
    await dsec.close();
    await host.close();
  };
  return { host, dsec, box, close };
};
