/** What a run shows to whoever watches it: checkers, traces, figures. Observers change nothing. */
import type { Commit } from '#bus/envelope.ts';
import type { WireError } from '#bus/errors.ts';
import type { EdgeName } from '#bus/ids.ts';
import type { ActorAddress } from '#bus/subjects.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { Message } from '../ports/event-store.ts';
import type { Machine, Process } from '../ports/machine.ts';

export interface Observer {
  /** A commit or a tombstone (null) is durable. */
  stored(message: Message, commit: Commit | null): void;
  /** An answer leaves an actor. */
  replied(address: ActorAddress, result: CommandResult): void;
  /** A node will not take an item. */
  refused(edge: EdgeName, error: WireError): void;
  born(machine: Machine, process: Process, epoch: number, obeyed: number): void;
  gone(machine: Machine, process: Process): void;
}

/** Tells several. */
export const observers = (all: readonly Partial<Observer>[]): Observer => ({
  stored: (message, commit) => {
    for (const one of all) one.stored?.(message, commit);
  },
  replied: (address, result) => {
    for (const one of all) one.replied?.(address, result);
  },
  refused: (edge, error) => {
    for (const one of all) one.refused?.(edge, error);
  },
  born: (machine, process, epoch, obeyed) => {
    for (const one of all) one.born?.(machine, process, epoch, obeyed);
  },
  gone: (machine, process) => {
    for (const one of all) one.gone?.(machine, process);
  },
});
