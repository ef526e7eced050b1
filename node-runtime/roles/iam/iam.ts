/**
 * The iam role: hosts project actors, lends their quota, answers the verbs about projects, principals and rights. @paper §3.2
 *
 * Any number of processes may run: each hears every commit of a project, and the log arbitrates between them.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { Effect, type Scope } from 'effect';
import type { ProjectName, Shard } from '#bus/ids.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { Directory } from '#actors/project/directory.ts';
import type { EventLog } from '#actors/ports/event-log.ts';
import type { Log } from '../../log/log.ts';
import { acquire, step } from '../scope.ts';
import { Ledger } from './ledger.ts';
import { Lending } from './lending.ts';
import { Projects } from './projects.ts';
import { ensureRoot, type RootCredential } from './root.ts';
import { serveLending } from './serve-lending.ts';

export type IamOptions = {
  readonly connection: NatsConnection;
  readonly eventLog: EventLog;
  readonly shards: readonly Shard[];
  readonly clock: Clock;
  readonly log: Log;
  /** The first project, and the key of its owner where the platform has made one. */
  readonly root: { readonly project: ProjectName; readonly owner: RootCredential | null };
  /** Told after each change of a project. */
  readonly onChange?: (directory: Directory) => void;
};

export type Iam = { readonly projects: Projects; readonly ledger: Ledger; readonly lending: Lending };

export const startIam = (o: IamOptions): Effect.Effect<Iam, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const projects: Projects = yield* acquire(
      () => new Projects({ ...o, onChange: () => o.onChange?.(projects.directory) }),
      (p) => p.close(),
    );
    const ledger = yield* acquire(
      () => Ledger.open({ ...o, onProject: (stored) => projects.heard(stored) }),
      (l) => l.close(),
    );
    yield* step(() => ensureRoot(projects, o.root));
    const lending = yield* acquire(
      () => new Lending({ ...o, projects, ledger }),
      (l) => l.close(),
    );
    yield* acquire(
      () => serveLending(o.connection, lending),
      (s) => s.close(),
    );
    return { projects, ledger, lending };
  });
