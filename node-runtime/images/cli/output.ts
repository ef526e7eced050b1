/** How images look on a terminal. */
import type { ImageRecord } from '#actors/ports/layer-store.ts';
import type { TimestampMs } from '#bus/units.ts';
import { plainTable } from '../../terminal/plain-table.ts';

export const printJson = (value: unknown): void => {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
};

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

export const formatBytes = (bytes: number): string => {
  const power = Math.min(UNITS.length - 1, bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${UNITS[power]}`;
};

const AGES: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];

export const formatAge = (ageMs: number): string => {
  const [unitMs, unit] = AGES.find(([size]) => ageMs >= size) ?? [1_000, 's'];
  return `${Math.max(0, Math.floor(ageMs / unitMs))} ${unit}`;
};

/** Twelve digits tell any two images of a store apart. */
const SHOWN_DIGEST = 'sha256:'.length + 12;

export const imageTable = (records: readonly ImageRecord[], now: TimestampMs): string => {
  const { table, text } = plainTable({ head: ['NAME', 'KIND', 'DIGEST', 'SIZE', 'AGE', 'SOURCE'] });
  for (const record of records) {
    table.push([
      record.name,
      record.kind,
      record.digest.slice(0, SHOWN_DIGEST),
      formatBytes(record.sizeBytes),
      formatAge(now - record.createdAt),
      record.source.slice(0, 60),
    ]);
  }
  return text();
};
