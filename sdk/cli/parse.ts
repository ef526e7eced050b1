/** Values of command-line options: turned into the SDK's own, or refused by name. */
import { DsecError } from '#bus/errors.ts';
import { SANDBOX_STATUSES, type SandboxStatus } from '#bus/sandbox/state.ts';

const refuse = (option: string, why: string): never => {
  throw DsecError.of('INVALID_ARGUMENT', `--${option}: ${why}`, { details: { fields: [option] } });
};

export const numberOf = (option: string, value: string | undefined): number | undefined => {
  if (value === undefined) return undefined;
  const number = value.trim() === '' ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : refuse(option, `${JSON.stringify(value.slice(0, 40))} is not a number`);
};

/** Seconds, with fractions, to whole milliseconds. */
export const millisecondsOf = (option: string, value: string | undefined): number | undefined => {
  const seconds = numberOf(option, value);
  if (seconds !== undefined && seconds <= 0) return refuse(option, 'must be more than 0 seconds');
  return seconds === undefined ? undefined : Math.max(1, Math.round(seconds * 1_000));
};

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** `10m`, `2h`, `3d`: so long before `now`; or a date and time as ISO 8601 has it. Milliseconds of the epoch. */
export const timeOf = (option: string, value: string | undefined, now: number): number | undefined => {
  if (value === undefined) return undefined;
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
  if (amount !== undefined) return Math.max(0, now - Number(amount) * (UNIT_MS[unit] ?? 0));
  const at = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isFinite(at) ? at : refuse(option, `${JSON.stringify(value.slice(0, 40))} is neither a span (10m, 2h, 3d) nor a time (2026-01-31T12:00:00Z)`);
};

/** `k=v` strings, the last of equal keys wins. */
export const pairsOf = (option: string, values: readonly string[] | undefined): Record<string, string> | undefined =>
  values === undefined
    ? undefined
    : Object.fromEntries(
        values.map((value) => {
          const at = value.indexOf('=');
          return at > 0 ? [value.slice(0, at), value.slice(at + 1)] : refuse(option, `${JSON.stringify(value.slice(0, 40))} is not KEY=VALUE`);
        }),
      );

/** One of a few words. */
export const oneOf = <T extends string>(option: string, known: readonly T[], value: string | undefined): T | undefined => {
  if (value === undefined || (known as readonly string[]).includes(value)) return value as T | undefined;
  return refuse(option, `${JSON.stringify(value.slice(0, 40))} is not one of ${known.join(', ')}`);
};

export const statusesOf = (option: string, values: readonly string[] | undefined): SandboxStatus[] | undefined =>
  values
    ?.flatMap((value) => value.split(','))
    .map((value) => {
      if ((SANDBOX_STATUSES as readonly string[]).includes(value)) return value as SandboxStatus;
      return refuse(option, `${JSON.stringify(value.slice(0, 40))} is not one of ${SANDBOX_STATUSES.join(', ')}`);
    });

/** For commander: an option that may be given more than once. */
export const collect = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];

/** The words after an id or image, without the `--` that may set them apart. */
export const wordsOf = (words: readonly string[]): readonly string[] => (words[0] === '--' ? words.slice(1) : words);
