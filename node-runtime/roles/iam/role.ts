/** IAM as a process has it: projects, quota lending, the auth callout where the bus has one, and its verbs. */
import { Effect, type Scope } from 'effect';
import { clockWithOffset } from '#actors/ports/clock.ts';
import { connectBus } from '../../bus/connect.ts';
import { type Config, shardsOf } from '../../config.ts';
import type { Log } from '../../log/log.ts';
import type { RoleOps } from '../../ops/role-ops.ts';
import { serveApi } from '../apiserver/apiserver.ts';
import { authenticateBy, everybody } from '../identity.ts';
import { credentialsOf, keyIn, openBus, serversOf } from '../open-bus.ts';
import type { SharedTails } from '../shared-tails.ts';
import { acquire } from '../scope.ts';
import type { FromRole } from '../supervision.ts';
import { serveCallout } from './callout.ts';
import { ClientList } from './client-list.ts';
import { startIam } from './iam.ts';
import { Kicker } from './kick.ts';
import type { Projects } from './projects.ts';
import { createIamVerbs } from './verbs.ts';

export const iamRole = (config: Config, ops: RoleOps, tails: SharedTails): Effect.Effect<null, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = ops;
    const { connection, jetStream } = yield* openBus(config, 'iam', ops, tails);
    const clock = clockWithOffset(config.clockOffsetMs);
    const shards = shardsOf(config);
    const { eventLog } = jetStream;
    const kicker: { current: Kicker | null } = { current: null };
    const clients = new ClientList((list) => process.send?.({ type: 'clients', clients: list } satisfies FromRole));
    const { projects, lending } = yield* startIam({
      connection,
      eventLog,
      shards,
      clock,
      log,
      root: { project: config.project, owner: rootOwnerOf(config) },
      onChange: (directory) => {
        clients.changed(directory);
        kicker.current?.changed();
      },
    });
    const verbs = createIamVerbs({ projects, lending, trail: jetStream.commitTrail, shards, clock });
    const issuer = keyIn(config, 'callout-issuer.nk');
    if (issuer) {
      const system = keyIn(config, 'system.nk');
      const kicking = system ? yield* kickerOf(config, system.seed, projects, log) : null;
      kicker.current = kicking;
      yield* acquire(
        () => serveCallout({ connection, directory: projects.directory, clock, log, issuer }),
        (callout) => callout.close(),
      );
    }
    const authenticate = credentialsOf(config, 'iam') ? authenticateBy(projects.directory, clock) : everybody;
    yield* acquire(
      () => serveApi({ connection, verbs, log, authenticate, service: 'iam' }),
      (api) => api.close(),
    );
    return null;
  });

const kickerOf = (config: Config, nkeySeed: string, { directory }: Projects, log: Log): Effect.Effect<Kicker, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const system = yield* acquire(
      () => connectBus({ servers: serversOf(config), credentials: { nkeySeed } }, 'dsec-iam-system', log),
      (c) => c.close(),
    );
    return yield* acquire(
      () => new Kicker(system, directory, log),
      (k) => k.close(),
    );
  });

/** The key that the platform wrote into its first context file. */
const rootOwnerOf = (config: Config): { name: string; publicKey: string } | null => {
  const key = keyIn(config, `client-${config.project}.owner.nk`);
  return key && { name: 'owner', publicKey: key.publicKey };
};
