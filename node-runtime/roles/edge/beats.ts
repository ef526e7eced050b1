/** Publishes this Edge's load each second. Beats carry no truth: whoever misses one learns the same from the next. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Beat, Capacity } from '#bus/edge/schema.ts';
import type { Probes } from '#bus/edge/probes.ts';
import { encode } from '#bus/envelope.ts';
import type { EdgeName } from '#bus/ids.ts';
import { beatSubject } from '#bus/subjects.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { Tenancy } from '#actors/placement/isolation.ts';
import { EDGE_LIMITS } from './limits.ts';

export type BeatsOptions = {
  readonly edge: EdgeName;
  readonly generation: number;
  readonly connection: NatsConnection;
  readonly capacity: Capacity;
  readonly used: () => Capacity;
  readonly accepting: () => boolean;
  readonly cordoned: () => string | null;
  readonly probes: () => Probes;
  readonly clock: Clock;
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: () => readonly string[];
  readonly tenancy: () => Tenancy;
  readonly admittedThrough: () => number;
  readonly simulated: boolean;
};

export const startBeats = (o: BeatsOptions): { stop(): void } => {
  let sequence = 0;
  const publish = () => {
    if (o.connection.isClosed()) return;
    sequence += 1;
    const beat: Beat = {
      v: 1,
      edge: o.edge,
      generation: o.generation,
      at: o.clock.now(),
      backends: ['container'],
      capacity: o.capacity,
      used: o.used(),
      accepting: o.accepting(),
      sequence,
      cordoned: o.cordoned(),
      probes: o.probes(),
      ...o.tenancy(),
      labels: { ...o.labels },
      layers: o.layers().slice(0, EDGE_LIMITS.beatLayers),
      admittedThrough: o.admittedThrough(),
      simulated: o.simulated,
    };
    o.connection.publish(beatSubject(o.edge), encode('beat', beat));
  };
  publish();
  const timer = setInterval(publish, EDGE_LIMITS.beatMs);
  return { stop: () => clearInterval(timer) };
};
