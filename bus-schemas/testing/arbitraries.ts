/** Random names and keys of every allowed shape and length. */
import fc from 'fast-check';
import { ClientKey, EdgeName, ProjectName } from '../ids.ts';
import { ID_LIMITS } from '../limits.ts';

const name = fc.stringMatching(/^[a-z0-9][a-z0-9_-]*$/).filter((s) => s.length <= ID_LIMITS.nameLength);
const longName = fc.constant(`z${'-9'.repeat(ID_LIMITS.nameLength)}`.slice(0, ID_LIMITS.nameLength));

export const anyProject = fc.oneof({ weight: 9, arbitrary: name }, longName).map((s) => ProjectName.parse(s));
export const anyEdge = fc.oneof({ weight: 9, arbitrary: name }, longName).map((s) => EdgeName.parse(s));
export const anyKey = fc
  .stringMatching(/^[\x21-\x7e]+$/)
  .filter((s) => s.length <= ID_LIMITS.clientKeyLength)
  .map((s) => ClientKey.parse(s));
