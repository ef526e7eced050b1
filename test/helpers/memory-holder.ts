/** Builds the program that holds memory, once per process; see `test/kernel/memory-holder.c`. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildLayer } from '#runtime/images/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

let built: string | undefined;

/** Path of a static program. */
export const memoryHolder = (): string => {
  if (built) return built;
  const out = join(projectRoot(), 'build/native/test');
  mkdirSync(out, { recursive: true });
  const target = join(out, `memory-holder-${process.pid}`);
  execFileSync('gcc', [
    '-std=c17',
    '-D_DEFAULT_SOURCE',
    '-O2',
    '-Wall',
    '-Werror',
    '-static',
    '-o',
    target,
    join(projectRoot(), 'test/kernel/memory-holder.c'),
  ]);
  execFileSync('mv', [target, join(out, 'memory-holder')]);
  built = join(out, 'memory-holder');
  return built;
};

/** Toolkit `holder`: the program at `/opt/memory-holder`. */
export const buildHolderLayer = async (host: TestPlatform): Promise<void> => {
  const root = join(host.dir, 'holder');
  mkdirSync(join(root, 'opt'), { recursive: true });
  cpSync(memoryHolder(), join(root, 'opt/memory-holder'));
  await buildLayer(host.store, { name: 'holder', kind: 'toolkit', source: { type: 'directory', path: root } });
};
