/**
 * INV-EFFECT: what the log says was done was done, and was seen to be done once. A sandbox that started has had that very
 * process; none is launched again once it was seen to run, or after it has ended; none outlives its end.
 */
import { type Checker, isFollowed, type MakeChecker } from './checker.ts';

type Seen = { pids: number[]; alive: boolean; started: boolean; ended: boolean };

export const effectChecker: MakeChecker = ({ oneIn, fail }): Checker => {
  const sandboxes = new Map<string, Seen>();
  const of = (id: string): Seen => {
    let seen = sandboxes.get(id);
    if (!seen) {
      seen = { pids: [], alive: false, started: false, ended: false };
      sandboxes.set(id, seen);
    }
    return seen;
  };
  return {
    born: (machine, { id, pid }) => {
      if (!isFollowed(id, oneIn)) return;
      const seen = of(id);
      if (seen.ended) fail('INV-EFFECT', `${id} was launched on ${machine.name} after it had ended`);
      if (seen.started) fail('INV-EFFECT', `${id} was launched on ${machine.name} again after it had been seen to run`);
      seen.pids.push(pid);
      seen.alive = true;
    },
    gone: (_, { id }) => {
      if (!isFollowed(id, oneIn)) return;
      const seen = of(id);
      seen.alive = false;
      if (seen.ended) sandboxes.delete(id);
    },
    stored: ({ address }, commit) => {
      if (address.kind !== 'sandbox' || !commit || !isFollowed(address.id, oneIn)) return;
      for (const event of commit.events) {
        const seen = of(address.id);
        if (event.type === 'SandboxStarted') {
          if (seen.started) fail('INV-EFFECT', `${address.id} was seen to start twice`);
          if (!seen.pids.includes(event['pid'] as number)) fail('INV-EFFECT', `${address.id} is said to run as process ${event['pid']}, which never was`);
          seen.started = true;
        } else if (event.type === 'SandboxStopped' || event.type === 'SandboxFailed') {
          if (seen.alive) fail('INV-EFFECT', `${address.id} is said to have ended and its process lives`);
          seen.ended = true;
        }
      }
    },
  };
};
