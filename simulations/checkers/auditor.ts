/**
 * A model of a sandbox's life that shares no code with the platform: which event may follow in which state, as the design tells it.
 * It predicts the state after each event; a commit that says otherwise is wrong, or the design has changed without the model.
 */
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

/** event → [states it may come in, state it leads to]; `=` stays, `<` goes back to where the step began. */
const LIFE: Readonly<Record<string, readonly [string, string]>> = {
  SandboxAdmitted: ['nothing', 'admitted'],
  SandboxPreparing: ['admitted', 'preparing'],
  SandboxStarting: ['admitted preparing', 'starting'],
  SandboxStarted: ['starting', 'running'],
  SandboxPausing: ['running', 'pausing'],
  SandboxPaused: ['pausing', 'paused'],
  SandboxResuming: ['paused', 'resuming'],
  SandboxResumed: ['resuming', 'running'],
  SandboxSnapshotting: ['running paused', 'snapshotting'],
  SandboxSnapshotted: ['snapshotting', '<'],
  SandboxTransitionFailed: ['pausing resuming snapshotting', '<'],
  SandboxLivesExtended: ['admitted preparing starting running pausing paused resuming snapshotting', '='],
  SandboxStopping: ['admitted preparing starting running pausing paused resuming snapshotting', 'stopping'],
  SandboxStopRetried: ['stopping', '='],
  SandboxForgetting: ['stopping stopped failed', '='],
  SandboxStopped: ['stopping', 'stopped'],
  SandboxFailed: ['stopping', 'failed'],
};
const BEGAN_IN: Readonly<Record<string, string>> = { pausing: 'running', resuming: 'paused' };

type Life = { state: string; before: string };

export const auditor: MakeChecker = ({ oneIn, fail }): Checker => {
  const lives = new Map<string, Life>();
  return {
    stored: ({ address }, commit) => {
      if (address.kind !== 'sandbox' || !isFollowed(address.id, oneIn)) return;
      if (!commit) return void lives.delete(address.id);
      const life = lives.get(address.id) ?? { state: 'nothing', before: 'nothing' };
      for (const { type } of commit.events) {
        const [from, to] = LIFE[type] ?? fail('AUDITOR', `${address.id}: the model knows no event ${type}`);
        if (!from.split(' ').includes(life.state)) fail('AUDITOR', `${address.id}: ${type} came while it was ${life.state}`);
        const next = to === '=' ? life.state : to === '<' ? (BEGAN_IN[life.state] ?? life.before) : to;
        if (next !== life.state) life.before = life.state;
        life.state = next;
      }
      const said = (commit.state as { status?: unknown }).status;
      if (said !== life.state) fail('AUDITOR', `${address.id} version ${commit.version}: it says ${said}, the model says ${life.state}`);
      lives.set(address.id, life);
    },
  };
};
