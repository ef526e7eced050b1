/** The Edge as a process has it: one, or with the null backend a whole fleet. */
import { Effect, type Scope } from 'effect';
import type { Config } from '../../config.ts';
import { showEdge } from '../../ops/role-gauges.ts';
import type { RoleOps } from '../../ops/role-ops.ts';
import { mayOperateOf } from '../authenticate.ts';
import { openBus } from '../open-bus.ts';
import { LOST_EXIT, SUPERSEDED_EXIT } from '../supervision.ts';
import { type Edge, startEdge } from './edge.ts';

const oneEdge = (config: Config, ops: RoleOps): Effect.Effect<Edge, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'edge', ops);
    const onSuperseded = (message: string) => {
      log.error('edge.superseded', { message });
      process.exit(SUPERSEDED_EXIT);
    };
    const onLost = (message: string) => {
      log.error('edge.lost', { message });
      process.exit(LOST_EXIT);
    };
    const { eventLog, commandQueue: queue, commandRecords: records } = jetStream;
    const mayOperate = yield* mayOperateOf(config, log, connection, jetStream);
    const edge = yield* startEdge({ config, connection, eventLog, queue, records, layers: jetStream, log, mayOperate, onSuperseded, onLost });
    showEdge(ops, () => edge.look());
    return edge;
  });

/** With the null backend one process may host a whole fleet. */
export const edgeRole = (config: Config, ops: RoleOps): Effect.Effect<Pick<Edge, 'drain'>, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    if (config.backend !== 'null' || config.nullEdges === 1) return yield* oneEdge(config, ops);
    const edges: Edge[] = [];
    for (let n = 0; n < config.nullEdges; n += 1) edges.push(yield* oneEdge({ ...config, edgeName: `${config.edgeName}-${n}` as Config['edgeName'] }, ops));
    return { drain: async (reportLeft) => void (await Promise.all(edges.map((one) => one.drain(reportLeft)))) };
  });
