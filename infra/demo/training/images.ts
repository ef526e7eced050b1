/**
 * Layers of a training demonstration: the demo's base and workspace, and the worker's own: the platform's worker programs,
 * node-pty for the scaffold's terminal, and the example's agent.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { LayerStore } from '#actors/ports/layer-store.ts';
import { ImageName } from '#bus/ids.ts';
import { buildLayer } from '#runtime/images/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import { ensureImages } from '../images.ts';
import { DEMO_PROJECT } from '../project.ts';
import type { TrainingImages } from './tasks.ts';

/** Where each file of the project lies in the layer. */
const FILES: Readonly<Record<string, string>> = {
  'sdk/worker/worker.mjs': 'opt/dsec-worker/worker.mjs',
  'sdk/worker/scaffold.mjs': 'opt/dsec-worker/scaffold.mjs',
  'infra/demo/training/toolkit/repair.mjs': 'opt/dsec-training/repair.mjs',
  'node_modules/node-pty/package.json': 'opt/dsec-worker/node_modules/node-pty/package.json',
  'node_modules/node-pty/build/Release/pty.node': 'opt/dsec-worker/node_modules/node-pty/build/Release/pty.node',
};
const PTY_LIB = 'node_modules/node-pty/lib';

export const ensureTrainingImages = async (store: LayerStore, say: (line: string) => void, signal: AbortSignal): Promise<TrainingImages> => {
  const { base, workspace } = await ensureImages(store, DEMO_PROJECT, say, signal);
  return { base, workspace, worker: await ensureWorkerLayer(store, say, signal) };
};

const ensureWorkerLayer = async (store: LayerStore, say: (line: string) => void, signal: AbortSignal): Promise<string> => {
  const root = projectRoot();
  const version = createHash('sha256');
  for (const file of Object.keys(FILES)) version.update(readFileSync(join(root, file)));
  const name = ImageName.parse(`demo/worker:${version.digest('hex').slice(0, 12)}`);
  const known = store.names.lookup(name);
  if (known && store.has(known.digest)) {
    say('worker layer: scaffold runner and agent (built before)');
    return name;
  }
  const staged = mkdtempSync(join(tmpdir(), 'dsec-worker-layer-'));
  try {
    for (const [from, to] of Object.entries(FILES)) copy(join(root, from), join(staged, to));
    for (const file of readdirSync(join(root, PTY_LIB), { recursive: true, encoding: 'utf8' }))
      if (file.endsWith('.js') && !file.endsWith('.test.js')) copy(join(root, PTY_LIB, file), join(staged, 'opt/dsec-worker', PTY_LIB, file));
    await buildLayer(store, { name, kind: 'toolkit', source: { type: 'directory', path: staged } }, { signal });
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
  say('worker layer: scaffold runner and agent');
  return name;
};

const copy = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
};
