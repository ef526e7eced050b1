import { expect } from 'vitest';
import { DsecError } from '#bus/errors.ts';

/** The typed error that this ends with. */
export const refusal = async (work: Promise<unknown>): Promise<DsecError> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(DsecError);
  return thrown as DsecError;
};
