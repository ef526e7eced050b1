/** Runs what a sandbox's state calls for on its backend, and turns the result into the command that reports it. */
import { DsecError, type WireError, wireError } from '#bus/errors.ts';
import type { SandboxCommand } from '#bus/sandbox/commands.ts';
import type { SandboxState } from '#bus/sandbox/state.ts';
import type { SandboxBackend } from '#actors/ports/sandbox-backend.ts';
import { isFinalFailure } from '#actors/sandbox/sandbox.failures.ts';
import type { SandboxEffect } from '#actors/sandbox/sandbox.effects.ts';
import { traced } from '../../tracing/spans.ts';
import type { EffectContext } from '../driver/driver.ts';
import type { JobLooks } from '../job-looks.ts';

export const sandboxEffectRunner =
  (backend: SandboxBackend, jobs: JobLooks) =>
  (effect: SandboxEffect, context: EffectContext<SandboxState>): Promise<SandboxCommand | null> => {
    const { state, stored } = context;
    if (effect.type === 'ensureAttached') return runOn(backend, jobs, effect, context); // lasts as long as the sandbox
    const span = { parent: stored.commit.traceparent, attributes: { 'dsec.sandbox': state.id } };
    return traced(`effect.${effect.type}`, span, () => runOn(backend, jobs, effect, context));
  };

const runOn = async (backend: SandboxBackend, jobs: JobLooks, effect: SandboxEffect, context: EffectContext<SandboxState>): Promise<SandboxCommand | null> => {
  const { state } = context;
  switch (effect.type) {
    case 'ensurePrepared':
      return finalOr(
        (error) => ({ type: 'ReportFailed', error }),
        async () => {
          await backend.ensurePrepared(state, context);
          return { type: 'ReportPrepared' };
        },
      );
    case 'ensureLaunched':
      return finalOr(
        (error) => ({ type: 'ReportFailed', error }),
        async () => {
          // Its first commit is durable: a job that has ended since finds it, one that ended before is seen here.
          const refused = await jobs.refusal(state.project, state.spec);
          if (refused) throw new DsecError(refused);
          return { type: 'ReportStarted', ...(await backend.ensureLaunched(state, context)) };
        },
      );
    case 'ensureAttached': {
      const gone = await backend.watch(state, effect.frozen, context);
      return gone ? { type: 'ReportExited', error: gone } : null;
    }
    case 'ensurePaused':
      return transition(async () => {
        return { type: 'ReportPaused', ...(await backend.ensurePaused(state)) };
      });
    case 'ensureResumed':
      return transition(async () => {
        await backend.ensureResumed(state);
        return { type: 'ReportResumed' };
      });
    case 'ensureSnapshot':
      return transition(async () => ({ type: 'ReportSnapshotted', ...(await backend.ensureSnapshot(state, effect, context)) }));
    case 'ensureDestroyed':
      await backend.ensureDestroyed(state);
      return { type: 'ReportDestroyed' };
  }
};

const transition = (work: () => Promise<SandboxCommand>): Promise<SandboxCommand> => finalOr((error) => ({ type: 'ReportTransitionFailed', error }), work);

/** A failure that would only fail again is reported; any other is thrown, and the driver tries again. */
const finalOr = async (report: (error: WireError) => SandboxCommand, work: () => Promise<SandboxCommand>): Promise<SandboxCommand> => {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof DsecError && isFinalFailure(thrown)) return report(thrown.toWire());
    if (!(thrown instanceof DsecError)) return report(wireError('INTERNAL', thrown instanceof Error ? thrown.message : String(thrown)));
    throw thrown;
  }
};
