import { z } from 'zod';

/** Kinds of zod types that zod's own code checks in time proportional to the value. */
const PLAIN = new Set(
  (
    'any array boolean default enum intersection int literal never nonoptional null nullable ' +
    'number object optional prefault readonly record string tuple union unknown'
  ).split(' '),
);
const PLAIN_CHECKS = new Set(
  (
    'greater_than length_equals less_than max_length min_length multiple_of number_format ' +
    'string_format'
  ).split(' '),
);
/** String formats whose patterns zod generates; other patterns have to be among `z.regexes`. */
const OWN_FORMATS = new Set(
  'date datetime ends_with guid includes lowercase starts_with time uppercase uuid'.split(' '),
);
const OWN_PATTERNS: ReadonlySet<unknown> = new Set(Object.values(z.regexes));

const known = new WeakMap<object, boolean>();

/**
 * Returns whether checking a value against this type can block the process: the type contains its
 * author's code (refinements, transforms, error maps) or a pattern, or it refers to itself, which
 * makes unions exponential in the depth of the value. False only if the check is provably cheap.
 */
export function mayBeSlow(type: z.core.$ZodType): boolean {
  const before = known.get(type);
  if (before !== undefined) return before;
  // A type that occurs again during its own walk refers to itself.
  known.set(type, true);
  const slow = hasSlowPart(type);
  known.set(type, slow);
  return slow;
}

function hasSlowPart({ _zod: { def } }: z.core.$ZodType): boolean {
  if (!PLAIN.has(def.type) || isSlowCheck(def)) return true;
  if ((def.checks ?? []).some(({ _zod: check }) => isSlowCheck(check.def))) return true;
  return partsOf(def).some((part) => mayBeSlow(part));
}

function isSlowCheck(def: object): boolean {
  const { check, format, pattern, error, fn, ...others } = fieldsOf(def);
  // `fn` is a format that the author defined.
  if (error !== undefined || fn !== undefined) return true;
  if (check === undefined) return false;
  if (typeof check !== 'string' || !PLAIN_CHECKS.has(check)) return true;
  // Such as `hostname` and `protocol` of a URL.
  if (Object.values(others).some(isForeignPattern)) return true;
  if (!isForeignPattern(pattern)) return false;
  return typeof format !== 'string' || !OWN_FORMATS.has(format);
}

function isForeignPattern(value: unknown): boolean {
  return value instanceof RegExp && !OWN_PATTERNS.has(value);
}

/** Returns the types inside a type: those of properties, elements, and alternatives. */
function partsOf(def: object): readonly z.core.$ZodType[] {
  const { shape, items, options, ...others } = fieldsOf(def);
  const lists = [shape, items, options].flatMap((each) =>
    isRecord(each) ? Object.values(each) : [],
  );
  return [...lists, ...Object.values(others)].filter(isType);
}

/** Returns all fields but the value of a default, a getter that may run the author's code. */
function fieldsOf(def: object): Record<string, unknown> {
  const names = Object.keys(def).filter((name) => name !== 'defaultValue');
  return Object.fromEntries(names.map((name) => [name, Reflect.get(def, name)]));
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isType(value: unknown): value is z.core.$ZodType {
  return isRecord(value) && '_zod' in value;
}
