/** Amounts of quota on the command line: `sandboxes=40 memoryMiB=65536`. */
import { DsecError } from '#bus/errors.ts';
import type { QuotaKey } from '#bus/project/quota.ts';

/** Of an option that may be given more than once. */
export const amountsOf = <K extends QuotaKey>(option: string, keys: readonly K[], values: readonly string[] | undefined): Partial<Record<K, number>> => {
  const amounts: Partial<Record<K, number>> = {};
  for (const value of values ?? []) {
    const [key = '', amount = ''] = value.split('=');
    if (!(keys as readonly string[]).includes(key) || !/^\d+$/.test(amount))
      throw DsecError.of('INVALID_ARGUMENT', `--${option} ${value.slice(0, 60)}: give <key>=<whole number>; keys are ${keys.join(', ')}`);
    amounts[key as K] = Number(amount);
  }
  return amounts;
};

export const amountsText = (amounts: Readonly<Record<string, number | null | undefined>>): string =>
  Object.entries(amounts)
    .flatMap(([key, amount]) => (typeof amount === 'number' ? [`${key}=${amount}`] : []))
    .join(' ') || 'none';
