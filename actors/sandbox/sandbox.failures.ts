/** Which failures of an effect are the last word: reported to the actor. Every other is tried again until the state's deadline. */
import type { ErrorCode, WireError } from '#bus/errors.ts';

/** Codes that a caller may well retry on another node, but that this node will not get past. */
const FINAL_HERE: ReadonlySet<ErrorCode> = new Set([
  'LAUNCH_FAILED',
  'START_FAILED',
  'NO_SPACE',
  // each try makes a sandbox stand still once more
  'LAYER_STORE_UNAVAILABLE',
  'LAYER_NOT_FOUND',
  'NODE_FULL',
  'UNPORTABLE_FILE',
  'KEY_CONFLICT',
]);

export const isFinalFailure = ({ code, retry }: WireError): boolean => FINAL_HERE.has(code) || retry === 'never';
