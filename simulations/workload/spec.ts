/** Specs of sandboxes as the apiserver would have resolved them. One object per group: its sandboxes share it. */
import { DEFAULT_LIMITS, SandboxSpec } from '#bus/sandbox/spec.ts';

export type Asked = {
  readonly memoryMiB: number;
  readonly cpuMillis: number;
  readonly totalMs: number;
  readonly idleMs: number | null;
  readonly layers?: number;
};

export const specOf = ({ memoryMiB, cpuMillis, totalMs, idleMs, layers = 1 }: Asked): SandboxSpec =>
  SandboxSpec.parse({
    backend: 'container',
    image: `image-${layers}`,
    layers: Array.from({ length: layers }, (_, i) => `sha256:${i.toString(16).padStart(64, '0')}`),
    limits: { ...DEFAULT_LIMITS, memoryMiB, cpuMillis, pids: 64 },
    lives: { totalMs, runningMs: null, idleMs },
    networkRules: {},
    initUser: 'root',
    env: {},
    labels: {},
    hostname: null,
  });
