/**
 * A cheap proof that a JSON value is already exactly what a schema would return. Whoever reads the bus meets tens of thousands of messages
 * per second, nearly all of them written by this program in its newest form; the schema itself costs ten times as much.
 *
 * True is a proof; false only means that the schema has to be asked: it fills in defaults, leaves out what is unknown, and says what is
 * wrong. So whatever this file does not know of a schema is answered with false. Built from the schema's own description, hence one
 * source; held equal to it in `proof.prop.spec.ts`.
 */
import type { z } from 'zod';

export type Proof = (value: unknown) => boolean;

/** The parts of a schema's description that are read here. */
type Definition = {
  readonly type: string;
  readonly coerce?: boolean;
  readonly format?: string;
  readonly checks?: readonly Check[];
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly catchall?: z.ZodType;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly discriminator?: string;
  readonly entries?: Readonly<Record<string, unknown>>;
  readonly values?: readonly unknown[];
};
type Check = { readonly _zod: { readonly def: CheckDefinition } };
type CheckDefinition = {
  readonly check: string;
  readonly format?: string;
  readonly pattern?: RegExp;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly value?: number;
  readonly inclusive?: boolean;
  readonly fn?: (value: unknown) => unknown;
};

const unproved: Proof = () => false;
const anything: Proof = () => true;
const known = new WeakMap<z.ZodType, Proof>();

/** Made at the first use of a schema and kept as long as that. */
export const proofOf = (schema: z.ZodType): Proof => {
  let proof = known.get(schema);
  if (!proof) {
    proof = compile(schema);
    known.set(schema, proof);
  }
  return proof;
};

/** `schema.safeParse` for messages that are mostly in their newest form. What is proved comes back as it is, not as a copy. */
export const safeParse = <T extends z.ZodType>(schema: T, value: unknown): z.ZodSafeParseResult<z.output<T>> =>
  proofOf(schema)(value) ? { success: true, data: value as z.output<T> } : (schema.safeParse(value) as z.ZodSafeParseResult<z.output<T>>);

const definitionOf = (schema: z.ZodType): Definition => schema._zod.def as unknown as Definition;

const compile = (schema: z.ZodType): Proof => {
  const def = definitionOf(schema);
  const checks = (def.checks ?? []).map(({ _zod }) => compileCheck(_zod.def));
  const base = (def.coerce ? undefined : COMPILERS[def.type])?.(def) ?? unproved;
  if (base === unproved || checks.includes(undefined)) return unproved;
  const all = [base, ...(checks as Proof[])];
  if (all.length === 1) return base;
  return (value) => {
    for (const proof of all) if (!proof(value)) return false;
    return true;
  };
};

const isSafeInteger: Proof = (value) => Number.isSafeInteger(value);

const COMPILERS: Readonly<Record<string, (def: Definition) => Proof>> = {
  string: (def) => (def.format === undefined ? (value) => typeof value === 'string' : unproved),
  number: (def) => {
    if (def.format === undefined) return (value) => typeof value === 'number' && Number.isFinite(value);
    return def.format === 'safeint' ? isSafeInteger : unproved;
  },
  boolean: () => (value) => typeof value === 'boolean',
  null: () => (value) => value === null,
  unknown: () => anything,
  any: () => anything,
  enum: ({ entries = {} }) => oneOf(Object.values(entries)),
  literal: ({ values = [] }) => oneOf(values),
  nullable: ({ innerType }) => {
    const inner = proofOf(innerType as z.ZodType);
    return (value) => value === null || inner(value);
  },
  // What is absent is the business of the object around it.
  optional: ({ innerType }) => proofOf(innerType as z.ZodType),
  default: ({ innerType }) => proofOf(innerType as z.ZodType),
  array: ({ element }) => {
    const each = proofOf(element as z.ZodType);
    return (value) => {
      if (!Array.isArray(value)) return false;
      for (const one of value) if (!each(one)) return false;
      return true;
    };
  },
  record: ({ keyType, valueType }) => {
    const ofKey = proofOf(keyType as z.ZodType);
    const ofValue = proofOf(valueType as z.ZodType);
    // Keys that the schema enumerates must all be there, which is not looked at here.
    if (definitionOf(keyType as z.ZodType).type !== 'string') return unproved;
    return (value) => {
      if (!isPlain(value)) return false;
      for (const key of Object.keys(value)) if (key === '__proto__' || !ofKey(key) || !ofValue(value[key])) return false;
      return true;
    };
  },
  object: (def) => compileObject(def),
  union: (def) => (def.discriminator === undefined ? compileUnion(def) : compileChoice(def, def.discriminator)),
};

const oneOf = (values: readonly unknown[]): Proof => {
  const first = values[0];
  if (values.length === 1) return (value) => value === first;
  const all = new Set(values);
  return (value) => all.has(value);
};

const compileCheck = ({ check, format, pattern, minimum = 0, maximum = 0, value: bound = 0, inclusive, fn }: CheckDefinition): Proof | undefined => {
  switch (check) {
    case 'min_length':
      return (value) => (value as { length: number }).length >= minimum;
    case 'max_length':
      return (value) => (value as { length: number }).length <= maximum;
    case 'greater_than':
      return inclusive ? (value) => (value as number) >= bound : (value) => (value as number) > bound;
    case 'less_than':
      return inclusive ? (value) => (value as number) <= bound : (value) => (value as number) < bound;
    case 'number_format':
      return format === 'safeint' ? isSafeInteger : undefined;
    case 'string_format':
      // One that remembers where it was would answer differently the next time.
      return format === 'regex' && pattern && !pattern.global && !pattern.sticky ? (value) => pattern.test(value as string) : undefined;
    case 'custom':
      return fn && ((value) => fn(value) === true);
    default:
      return undefined;
  }
};

type Plain = Readonly<Record<string, unknown>>;
const isPlain = (value: unknown): value is Plain => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Absent, it stays absent: nothing is filled in, and nothing is asked of what is not there. */
const mayLack = (schema: z.ZodType): boolean => {
  const { type, checks = [], innerType } = definitionOf(schema);
  return type === 'optional' && checks.length === 0 && innerType !== undefined && innerType._zod.optin === undefined;
};

const compileObject = ({ shape = {}, catchall }: Definition): Proof => {
  const fields = Object.entries(shape).map(([name, schema]) => ({ name, proof: proofOf(schema), mayLack: mayLack(schema) }));
  if (fields.some(({ name }) => name in Object.prototype)) return unproved;
  const othersAs = catchall === undefined ? 'never' : definitionOf(catchall).type;
  if (othersAs !== 'never' && othersAs !== 'unknown') return unproved;
  const takesOthers = othersAs === 'unknown';
  return (value) => {
    if (!isPlain(value)) return false;
    let found = 0;
    for (const { name, proof, mayLack } of fields) {
      const field = value[name];
      if (field === undefined) {
        if (mayLack && !(name in value)) continue;
        return false;
      }
      if (!proof(field)) return false;
      found += 1;
    }
    return takesOthers ? !Object.hasOwn(value, '__proto__') : Object.keys(value).length === found;
  };
};

const AS_THEY_ARE: ReadonlySet<string> = new Set(['string', 'number', 'boolean', 'null', 'enum', 'literal']);

/** The first that takes it counts: one that comes after another is proved only where all before it would return it as it is, too. */
const compileUnion = ({ options = [] }: Definition): Proof => {
  const alters = options.findIndex((option) => !AS_THEY_ARE.has(definitionOf(option).type));
  const proofs = options.slice(0, alters === -1 ? options.length : alters + 1).map(proofOf);
  return (value) => {
    for (const proof of proofs) if (proof(value)) return true;
    return false;
  };
};

/** Options told apart by the literal in one of their fields. */
const compileChoice = ({ options = [] }: Definition, discriminator: string): Proof => {
  const byValue = new Map<unknown, Proof>();
  for (const option of options) {
    const field = definitionOf(option).shape?.[discriminator];
    const { type, values = [] } = field ? definitionOf(field) : { type: 'none' };
    if (type !== 'literal') return unproved;
    for (const value of values) byValue.set(value, proofOf(option));
  }
  return (value) => isPlain(value) && (byValue.get(value[discriminator]) ?? unproved)(value);
};
