/** The demo's three layers, built at the first run and found in the store afterwards. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LayerKind, LayerStore } from '#actors/ports/layer-store.ts';
import { ImageName } from '#bus/ids.ts';
import { buildLayer, type ImageSource } from '#runtime/images/mod.ts';
import { projectRoot } from '#runtime/project-root.ts';
import type { DemoProject } from './project.ts';

export type DemoImages = { readonly base: string; readonly workspace: string; readonly toolkit: string };

export const ensureImages = async (store: LayerStore, project: DemoProject, say: (line: string) => void, signal: AbortSignal): Promise<DemoImages> => {
  const toolkitDir = join(projectRoot(), 'infra/demo/toolkit');
  const toolkitVersion = readFileSync(join(toolkitDir, 'opt/dsec-demo/bin/once'), 'utf8');
  const ensure = async (what: string, kind: LayerKind, source: ImageSource, version: unknown): Promise<string> => {
    const name = ImageName.parse(`demo/${kind}:${createHash('sha256').update(JSON.stringify(version)).digest('hex').slice(0, 12)}`);
    const known = store.names.lookup(name);
    if (known && store.has(known.digest)) {
      say(`${kind} layer: ${what} (${mib(known.sizeBytes)}, built before)`);
      return name;
    }
    say(`${kind} layer: building ${what}`);
    let lastSaid = performance.now();
    const record = await buildLayer(
      store,
      { name, kind, source },
      {
        signal,
        onProgress: ({ step, detail }) => {
          if (performance.now() - lastSaid < PROGRESS_EVERY_MS) return;
          lastSaid = performance.now();
          say(`  ${step}: ${detail}`);
        },
      },
    );
    say(`${kind} layer: ${what} (${mib(record.sizeBytes)})`);
    return name;
  };
  const base: ImageSource = { type: 'mmdebstrap', variant: 'minbase', include: project.packages, slim: true };
  return {
    base: await ensure(`a Debian root with ${project.packages.join(', ') || 'nothing more'}`, 'base', base, base),
    workspace: await ensure(project.title, 'workspace', project.source, project.source),
    toolkit: await ensure('a counter of starts', 'toolkit', { type: 'directory', path: toolkitDir }, toolkitVersion),
  };
};

const PROGRESS_EVERY_MS = 2_000;
const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
