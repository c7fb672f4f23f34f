import { type Json, type JsonObject, isObject } from './json.js';
import { show } from './text.js';

/**
 * Returns what is wrong with the value at the path `at`, or null. Never throws for a JSON value.
 */
type Check = (value: unknown, at: string) => string | null;

/** A handwritten check. A schema library would need half a megabyte of memory per cached run. */
export interface Shape<T> extends Check {
  /** Never set. It ties the shape to exactly this type, so the compiler detects a missing field. */
  readonly of?: (value: T) => T;
}

/** Returns a shape that tests a value. `expected` describes valid values in words. */
export function shape<T>(expected: string, fits: (value: unknown) => boolean): Shape<T> {
  return (value, at) => (fits(value) ? null : `${at}: expected ${expected}, got ${show(value)}`);
}

export const text = shape<string>('a string', (value) => typeof value === 'string');
export const flag = shape<boolean>('true or false', (value) => typeof value === 'boolean');
export const yes = shape<true>('true', (value) => value === true);
export const amount = shape<number>(
  'a number from 0',
  (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
);
export const count = shape<number>(
  'a whole number from 0',
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
);
/** A field that this variant never has. */
export const absent = shape<undefined>('nothing', (value) => value === undefined);
export const jsonObject = shape<JsonObject>('an object', isObject);

/** Any JSON value. */
export const json: Shape<Json> = (value, at) =>
  value === undefined ? `${at}: expected a value, got nothing` : null;

export function hex(digits: number): Shape<string> {
  const pattern = new RegExp(`^[0-9a-f]{${digits}}$`);
  return shape(`${digits} hex digits`, (value) => typeof value === 'string' && pattern.test(value));
}

export function oneOf<const T extends string | number | boolean | null>(
  ...words: readonly T[]
): Shape<T> {
  return shape(`one of ${words.join(', ')}`, (value) => words.some((word) => word === value));
}

export function nullable<T>(inner: Shape<T>): Shape<T | null> {
  return (value, at) => (value === null ? null : inner(value, at));
}

/** A field that may be absent. */
export function optional<T>(inner: Shape<T>): Shape<T | undefined> {
  return (value, at) => (value === undefined ? null : inner(value, at));
}

/**
 * A value that fits one of these shapes. Unlike `tagged`, it works for objects without a
 * distinguishing field.
 */
export function either<T extends readonly unknown[]>(
  ...shapes: { readonly [K in keyof T]: Shape<T[K]> }
): Shape<T[number]> {
  const checks: readonly Check[] = shapes;
  return (value, at) => {
    const problems = checks.map((each) => each(value, at));
    return problems.includes(null) ? null : (problems.at(-1) ?? `${at}: expected nothing`);
  };
}

export function list<T>(each: Shape<T>): Shape<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) return `${at}: expected a list, got ${show(value)}`;
    for (let index = 0; index < value.length; index += 1) {
      const problem = each(value[index], `${at}[${index}]`);
      if (problem !== null) return problem;
    }
    return null;
  };
}

/** An object with any keys. */
export function table<T>(each: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, at) => {
    if (!isObject(value)) return `${at}: expected an object, got ${show(value)}`;
    for (const [key, entry] of Object.entries(value)) {
      const problem = each(entry, `${at}.${key}`);
      if (problem !== null) return problem;
    }
    return null;
  };
}

/** A shape for each field of `T`. A field that may be absent needs `optional`. */
export type FieldShapes<T> = {
  readonly [K in keyof T]-?: Shape<object extends Pick<T, K> ? T[K] | undefined : T[K]>;
};

/**
 * An object with these fields. Other fields are ignored, because a newer version may write them.
 */
export function fields<T extends object>(shapes: FieldShapes<T>): Shape<T> {
  return checkFields(Object.entries<Check>(shapes));
}

function checkFields(entries: readonly (readonly [string, Check])[]): Check {
  return (value, at) => {
    if (!isObject(value)) return `${at}: expected an object, got ${show(value)}`;
    for (const [key, each] of entries) {
      const problem = each(value[key], `${at}.${key}`);
      if (problem !== null) return problem;
    }
    return null;
  };
}

/** The type of the values that a shape accepts. */
export type Infer<S> = S extends Shape<infer T> ? T : never;

type MayBeAbsent<S> = undefined extends Infer<S> ? true : false;
type Flat<T> = { readonly [K in keyof T]: T[K] };
type InferFields<S> = Flat<
  { readonly [K in keyof S as MayBeAbsent<S[K]> extends true ? never : K]: Infer<S[K]> } & {
    readonly [K in keyof S as MayBeAbsent<S[K]> extends true ? K : never]?: Exclude<
      Infer<S[K]>,
      undefined
    >;
  }
>;

/** An object with these fields, from which its type is inferred, with their comments. */
export function object<const S extends Readonly<Record<string, Check>>>(
  shapes: S,
): Shape<InferFields<S>> {
  return checkFields(Object.entries<Check>(shapes));
}

/** One of several objects that the field `key` distinguishes. */
export function tagged<T, K extends keyof T & string>(
  key: K,
  shapes: { readonly [V in T[K] & string]: Shape<Extract<T, Readonly<Record<K, V>>>> },
): Shape<T> {
  return taggedBy(key, Object.entries<Check>(shapes));
}

/** The same for shapes that stand elsewhere, each with its value of `key`. */
export function taggedBy(key: string, shapes: Iterable<readonly [string, Check]>): Check {
  const known = new Map(shapes);
  return (value, at) => {
    if (!isObject(value)) return `${at}: expected an object, got ${show(value)}`;
    const tag = value[key];
    const found = typeof tag === 'string' ? known.get(tag) : undefined;
    if (found !== undefined) return found(value, at);
    return `${at}.${key}: expected one of ${[...known.keys()].join(', ')}, got ${show(tag)}`;
  };
}

/** Returns a type guard for a shape. */
export function guard<T>(inner: Shape<T>): (value: unknown) => value is T {
  return (value): value is T => inner(value, '') === null;
}
