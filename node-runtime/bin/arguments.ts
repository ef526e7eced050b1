/**
 * The arguments of this program as they were given. Node reads them as UTF-8 and puts U+FFFD in the place of every other byte, which
 * would name another file and hand a command another argument; so those are read again, and stand as `byte-path.ts` says.
 */
import { readFileSync } from 'node:fs';
import { textOfBytes } from '#bus/op/byte-path.ts';

const REPLACED = '\ufffd';

/** `commandLine`: /proc/self/cmdline, every argument with a NUL behind it, what Node took for itself included. Pure. */
export const exactArguments = (args: readonly string[], commandLine: () => Buffer): string[] => {
  if (!args.some((arg) => arg.includes(REPLACED))) return [...args];
  const all = commandLine().toString('latin1').split('\0').slice(0, -1);
  return all.slice(all.length - args.length).map((arg) => textOfBytes(Buffer.from(arg, 'latin1')));
};

export const ownArguments = (): string[] => exactArguments(process.argv.slice(2), () => readFileSync('/proc/self/cmdline'));
