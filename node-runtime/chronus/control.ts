/** What a caller does to a running command: signals, and bytes for its standard input. */
import { constants } from 'node:os';
import { DsecError } from '#bus/errors.ts';
import { EXEC_LIMITS } from '#bus/limits.ts';
import type { OpParsed } from '#bus/op/schema.ts';
import type { AetherClient } from '../aether/client.ts';
import type { Channel } from './channel.ts';
import type { Command } from './command.ts';

type SignalName = OpParsed<'signal'>['signal'];
const signalNumber = (name: SignalName): number => constants.signals[`SIG${name}`];

/** False when nothing of the command is left that could get it. */
export const sendSignal = async (channel: Channel, command: Command, { signal, tree, sinceInput }: OpParsed<'signal'>): Promise<boolean> => {
  if (tree && signal !== 'KILL') throw DsecError.of('INVALID_ARGUMENT', `only KILL reaches a whole tree; send ${signal} without tree`);
  if (!tree && sinceInput) throw DsecError.of('INVALID_ARGUMENT', 'sinceInput chooses among a tree; send it with KILL and tree');
  const client = await channel.client();
  if (!client) return false;
  return sinceInput ? client.killSinceInput(command.execId) : client.signal(command.execId, signalNumber(signal), tree);
};

const NO_BYTES = new Uint8Array(0);

/**
 * Answers with the offset up to which everything is taken over. When the program does not read, that is `offset` itself
 * after a while: the caller sends the same again, and nothing is doubled.
 */
export const feedStdin = async (channel: Channel, command: Command, { offset, close }: OpParsed<'stdin'>, body: Uint8Array): Promise<number> => {
  if (command.accepted.stdin !== 'open') {
    throw DsecError.of('STDIN_CLOSED', `command ${command.execId} was started with stdin '${command.accepted.stdin}'; start it with 'open' to write to it`);
  }
  const fed = command.stdinTail.then(() => feed(channel, command, offset, body, close));
  let taken: Promise<number> | undefined;
  const settled = fed.finally(() => {
    taken = fed;
  });
  command.stdinTail = settled.catch(() => undefined);
  await command.wait('end', EXEC_LIMITS.longPollMs, settled);
  return taken ?? (command.ended ? offset + body.byteLength : offset);
};

const feed = async (channel: Channel, command: Command, offset: number, body: Uint8Array, close: boolean): Promise<number> => {
  // a reader that is gone swallows the rest, as in a shell's pipeline
  const swallowed = offset + body.byteLength;
  if (command.ended) return swallowed;
  const client = await channel.client();
  const answer = client ? await send(client, command, offset, body, close) : { nextOffset: swallowed };
  if ('nextOffset' in answer) return answer.nextOffset;
  switch (answer.refusal) {
    case 'unknown-exec':
      return swallowed;
    case 'stdin-closed':
      throw DsecError.of('STDIN_CLOSED', `standard input of command ${command.execId} was closed before offset ${offset}`);
    case 'stdin-gap':
      throw DsecError.of(
        'INVALID_ARGUMENT',
        `offset ${offset} leaves a gap in the standard input of command ${command.execId}; go on where the last answer said`,
      );
    default:
      return offset;
  }
};

/** Bytes that an earlier Edge sent may still wait for the program: an empty message is answered when they are through. */
const send = async (client: AetherClient, command: Command, offset: number, body: Uint8Array, close: boolean) => {
  const answer = await client.stdin(command.execId, offset, body, close);
  if (!('refusal' in answer) || answer.refusal !== 'stdin-busy') return answer;
  const waited = await client.stdin(command.execId, 0, NO_BYTES, false);
  return 'refusal' in waited ? waited : client.stdin(command.execId, offset, body, close);
};
