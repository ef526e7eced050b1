/**
 * A cheap proof that a parsed message is a commit exactly as the schema has it: readers of the log meet tens of thousands per second, and
 * the schema costs them ten times as much. True is a proof; false only means that the schema has to be asked, which also lifts older
 * versions, fills in what was left out, and says what is wrong. Held equal to the schema in `envelope.prop.spec.ts`.
 */
import { ACTOR_KINDS } from './subjects.ts';

type Raw = Readonly<Record<string, unknown>>;

const KINDS: ReadonlySet<unknown> = new Set(ACTOR_KINDS);
const ID_LENGTH_MAX = 200;

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isPositive = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0;
const isId = (value: unknown): boolean => typeof value === 'string' && value.length > 0 && value.length <= ID_LENGTH_MAX;
const isText = (value: unknown): boolean => typeof value === 'string';
const isRecord = (value: unknown): value is Raw => value !== null && typeof value === 'object' && !Array.isArray(value) && !Object.hasOwn(value, '__proto__');
const isEvent = (value: unknown): boolean => isRecord(value) && typeof value['type'] === 'string';

type Check = (value: unknown) => boolean;
/** Maps: a field may be named like a method of every object. */
const REQUIRED: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['v', (value) => value === 1],
  ['kind', (value) => KINDS.has(value)],
  ['actorId', isText],
  ['version', isPositive],
  ['at', isCount],
  ['commandId', isId],
  ['correlationId', isId],
  ['principal', isText],
  ['lastCommandSequence', isCount],
  ['schema', isPositive],
  ['events', (value) => Array.isArray(value) && value.length > 0 && value.every(isEvent)],
  ['state', isRecord],
]);
const OPTIONAL: ReadonlyMap<string, Check> = new Map([
  ['causationId', isId],
  ['traceparent', isText],
]);

export const isPlainCommit = (raw: Raw): boolean => {
  let required = 0;
  for (const field of Object.keys(raw)) {
    const check = REQUIRED.get(field);
    if (check) required += 1;
    if (!(check ?? OPTIONAL.get(field))?.(raw[field])) return false;
  }
  return required === REQUIRED.size;
};
