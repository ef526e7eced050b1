/**
 * What is typed into a session's shell: POSIX sh, understood by bash, dash and busybox alike. Pure.
 *
 * A script runs by `eval` in the shell itself, so that whatever it changes stays. Its end is marked in both streams, through
 * descriptors that the script does not see, by bytes that cannot stand in the script's own text. `command eval`: a mistake in
 * the script's syntax must not end the shell. URG, which nobody else uses and which is ignored by default, breaks a loop off.
 */
import { DsecError } from '#bus/errors.ts';

/** The image's bash where it has one: what people write for agents is mostly that. */
export const SHELL_ARGV = ['/bin/sh', '-c', 'command -v bash >/dev/null 2>&1 && exec bash --norc --noprofile -s; exec /bin/sh -s'] as const;
/** Sent to break off what the shell itself is doing. */
export const BREAK_SIGNAL = 'URG';
/** What a script that was broken off ends with, in the shell. */
const BROKEN_OFF = 143;

const RECORD_SEPARATOR = '\x1e';

export const PROLOGUE = `${[
  'exec 8>&1 9>&2',
  '__dsec_run() { __dsec_on=1; command eval "$1"; }',
  String.raw`__dsec_end() { __dsec_on=; printf '\036%s %d\036' "$1" "$2" >&8; printf '\036%s\036' "$1" >&9; }`,
  `trap '[ -z "$__dsec_on" ] || return ${BROKEN_OFF}' ${BREAK_SIGNAL}`,
].join('\n')}\n`;

/** One line of input that runs `script` and marks its end with `mark`. */
export const lineOf = (script: string, mark: string): string => {
  if (script.includes('\0')) throw DsecError.of('INVALID_ARGUMENT', 'script: may not contain NUL');
  return `__dsec_run ${quote(script)} </dev/null 8>&- 9>&-; { __dsec_end ${mark} $?; } 2>/dev/null\n`;
};

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The end of a script as it stands in stdout and in stderr. */
export const endMarks = (mark: string) => ({
  stdout: { begin: `${RECORD_SEPARATOR}${mark} `, end: RECORD_SEPARATOR },
  stderr: { begin: `${RECORD_SEPARATOR}${mark}`, end: RECORD_SEPARATOR },
});
