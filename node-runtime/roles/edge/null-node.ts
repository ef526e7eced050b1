/** A node that is none: what an Edge with the null backend stands on. Every layer is there, and nothing is ever mounted. */
import { mkdirSync } from 'node:fs';
import { Effect, type Scope } from 'effect';
import { NullBackend } from '../../backends/null/backend.ts';
import { type Config, pathsOf } from '../../config.ts';
import type { Log } from '../../log/log.ts';
import type { Node } from './node.ts';

export const openNullNode = (config: Config, log: Log): Effect.Effect<Node, unknown, Scope.Scope> =>
  Effect.sync(() => {
    const { sandboxes, trash } = pathsOf(config);
    for (const dir of [sandboxes, trash]) mkdirSync(dir, { recursive: true, mode: 0o711 }); // what is swept later
    log.warn('edge.simulated', { message: 'backend null: sandboxes are records only, no process is ever started; for scale tests' });
    return {
      store: { has: () => true, catchUp: async () => {} },
      layersLocal: () => true,
      images: { restore: () => {}, sweep: async () => {}, ready: () => [] },
      backend: new NullBackend(),
      launcher: { close: async () => {}, waiting: () => 0 },
    };
  });
