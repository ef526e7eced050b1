/** A message read as production reads it: proved where it is in its newest form, parsed otherwise; throws what its schema says. */
import type { z } from 'zod';
import { proofOf } from '#bus/proof.ts';

export const readAs = <T extends z.ZodType>(schema: T, value: unknown): z.output<T> => (proofOf(schema)(value) ? (value as z.output<T>) : schema.parse(value));
