/**
 * One process that plays one or more roles, each on its own connection with its own key.
 *
 * Started by hand, by systemd or by `dsec up`; then the parent's IPC channel carries `ready` and `drain`, and its end means
 * that nobody watches any more: the process ends, live sandboxes go on.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Effect, Scope } from 'effect';
import { ERRORS, toWireError } from '#bus/errors.ts';
import { COMMANDS_STREAM } from '#bus/subjects.ts';
import type { Config } from '../config.ts';
import { createLog } from '../log/log.ts';
import { Ops } from '../ops/ops.ts';
import { startTracing, type Tracing } from '../tracing/start.ts';
import { apiserverRole } from './apiserver/role.ts';
import type { Edge } from './edge/edge.ts';
import { edgeRole } from './edge/role.ts';
import { iamRole } from './iam/role.ts';
import { jobsRole, type Lent } from './jobs/role.ts';
import { placementRole } from './placement/role.ts';
import { open } from './scope.ts';
import { SharedTails } from './shared-tails.ts';
import type { FromRole, ServedRole, ToRole } from './supervision.ts';
import { watcherRole } from './watcher/role.ts';

const program = (
  role: ServedRole,
  config: Config,
  lent: Lent,
  process: Ops,
  tails: SharedTails,
): Effect.Effect<Pick<Edge, 'drain'> | null, unknown, Scope.Scope> => {
  const ops = process.role(role, createLog(role, config.logLevel));
  switch (role) {
    case 'apiserver':
      return apiserverRole(config, ops, tails);
    case 'iam':
      return iamRole(config, ops, tails);
    case 'placement':
      return placementRole(config, ops);
    case 'watcher':
      return watcherRole(config, ops);
    case 'jobs':
      return jobsRole(config, ops, lent);
    case 'edge':
      return edgeRole(config, ops);
  }
};

/** Plays the roles until told to end. Resolves with the exit code, after a failure that of its error. */
export const serve = async (roles: readonly ServedRole[], config: Config, lent: Lent): Promise<number> => {
  const tell = (message: FromRole) => process.send?.(message);
  const log = createLog(roles.join('+'), config.logLevel);
  const ended = endSignal();
  const opened: { value: Pick<Edge, 'drain'> | null; close: () => Promise<void> }[] = [];
  const pidFile = join(config.runDir, `${roles.join('+')}.pid`);
  let ops: Ops | undefined;
  let tracing: Tracing | undefined;
  try {
    tracing = await startTracing(config.traces, `dsec-${roles.join('+')}`);
    ops = await Ops.open(roles, config, log);
    const tails = new SharedTails();
    for (const role of roles) opened.push(await open(program(role, config, lent, ops, tails)));
    writeFileSync(pidFile, `${process.pid}\n`);
    ops.serving();
    log.info('role.ready', { commands: COMMANDS_STREAM });
    tell({ type: 'ready' });
    const how = await ended;
    ops.ending();
    if (how === 'drain') {
      for (const { value } of opened) await value?.drain((left) => tell({ type: 'draining', left }));
      tell({ type: 'drained' });
    }
    return 0;
  } catch (thrown) {
    const { code, message } = toWireError(thrown);
    log.error('role.failed', { code, message, stack: (thrown as Error).stack });
    tell({ type: 'failed', code, message });
    return ERRORS[code].exit;
  } finally {
    rmSync(pidFile, { force: true });
    for (const { close } of opened.reverse()) await close();
    await ops?.close();
    await tracing?.close().catch((thrown: unknown) => log.warn('tracing.not_flushed', { message: (thrown as Error).message }));
    log.info('role.ended', {});
  }
};

/** Whichever comes first: a signal, the parent's order to drain, or the parent's end. */
const endSignal = (): Promise<'drain' | 'end'> =>
  new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('end'));
    if (process.send) {
      process.on('SIGINT', () => {}); // the terminal's Ctrl-C reaches the whole group; the parent decides what it means
      process.on('message', (message: ToRole) => {
        if (message.type === 'drain') resolve('drain');
      });
      process.once('disconnect', () => resolve('end'));
    } else process.once('SIGINT', () => resolve('end'));
  });
