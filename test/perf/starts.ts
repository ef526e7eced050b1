/** Hears when sandboxes start, as their caller would: stored commits, told apart by their bytes, since there are thousands per second. */
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { outFilter } from '#bus/subjects.ts';
import type { ProjectName } from '#bus/ids.ts';

const STARTED = Buffer.from('"type":"SandboxStarted"');

export type Starts = {
  /** Moments, ms on the clock of `performance`, by sandbox. */
  readonly seen: ReadonlyMap<string, number>;
  /** Resolves when so many have started in all; false when nothing new came for `stallMs`. */
  until(count: number, stallMs: number): Promise<boolean>;
  close(): Promise<void>;
};

export const listenForStarts = async (servers: readonly string[], project: string): Promise<Starts> => {
  const nc: NatsConnection = await connect({ servers: [...servers], name: 'bench-starts' });
  const seen = new Map<string, number>();
  nc.subscribe(outFilter({ project: project as ProjectName, kind: 'sandbox' }), {
    callback: (_, { subject, data }) => {
      if (!Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(STARTED)) return;
      const id = subject.slice(subject.lastIndexOf('.') + 1);
      if (!seen.has(id)) seen.set(id, performance.now());
    },
  });
  await nc.flush();
  return {
    seen,
    until: async (count, stallMs) => {
      for (let before = -1, at = performance.now(); seen.size < count; ) {
        if (seen.size !== before) {
          before = seen.size;
          at = performance.now();
        } else if (performance.now() - at > stallMs) return false;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return true;
    },
    close: () => nc.close(),
  };
};
