import { isJsonObject, isObject, type Json, type JsonObject } from '../json.js';
import { valueAt } from '../graph/values.js';

/** The result of an earlier action, or a part of it. In JSON: `{"$ref":"a1","path":"data.id"}`. */
export interface Reference {
  readonly ref: string;
  /** Names and indexes, separated by dots; empty: the whole result. */
  readonly path: string;
}

/** The keys that lead to a value. */
export type Place = readonly (string | number)[];

/** A reference and its place in the arguments. */
export type PlacedReference = Reference & { readonly at: Place };

/** Arguments in which some references may have been replaced by data. */
export interface Referring {
  readonly arguments: JsonObject;
  /**
   * The places of the open references; absent: every part of the arguments that looks like a
   * reference is one. Data that was filled in may look like a reference and is never one.
   */
  readonly refs?: readonly Place[];
}

/** Returns the value as a reference; null if it is not one. */
function referenceOf(value: unknown): Reference | null {
  if (!isObject(value)) return null;
  const { $ref, path = '', ...rest } = value;
  if (typeof $ref !== 'string' || typeof path !== 'string') return null;
  return Object.keys(rest).length === 0 ? { ref: $ref, path } : null;
}

/**
 * Returns all references in a value that a planner wrote, at any depth, each with its place. For
 * arguments into which data may have been filled, use `openRefs`.
 */
export function refsIn(value: unknown, at: Place = []): readonly PlacedReference[] {
  const reference = referenceOf(value);
  if (reference !== null) return [{ ...reference, at }];
  if (Array.isArray(value)) {
    return value.flatMap((inner: unknown, index) => refsIn(inner, [...at, index]));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => refsIn(inner, [...at, key]));
}

/** Returns the references that are still to be resolved. */
export function openRefs({ arguments: given, refs }: Referring): readonly PlacedReference[] {
  if (refs === undefined) return refsIn(given);
  return refs.flatMap((at) => {
    const reference = referenceOf(at.reduce(innerValue, given));
    return reference === null ? [] : [{ ...reference, at }];
  });
}

function innerValue(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return typeof key === 'number' ? value[key] : undefined;
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/**
 * The target of a reference: the value of a result, or the name of its artifact. `failed`: the
 * action has none, and every part of it is null.
 */
export type Referred =
  | { readonly value: Json }
  | { readonly artifact: string }
  | { readonly failed: true };

/** The outcome of `resolveReferences`. */
export type Resolved =
  | ({ readonly ok: true } & Referring)
  | { readonly ok: false; readonly problem: string };

/**
 * Replaces the open references with the results of finished actions, or with artifact names,
 * because tools read artifacts by name. A reference is resolved once: results are inserted
 * unchanged, and nothing in them is a reference, now or later. A reference to an unfinished action
 * stays. `results`: by action id.
 */
export function resolveReferences(
  given: Referring,
  results: ReadonlyMap<string, Referred>,
): Resolved {
  const open = openRefs(given);
  const left = open.filter(({ ref }) => !results.has(ref)).map(({ at }) => at);
  let filled: Json = given.arguments;
  for (const { at, ...reference } of open) {
    const result = results.get(reference.ref);
    if (result === undefined) continue;
    const found = targetOf(reference, result);
    if ('problem' in found) return { ok: false, problem: found.problem };
    filled = withValueAt(filled, at, found.value);
  }
  const value = isJsonObject(filled) ? filled : {};
  const isPlain = refsIn(value).length === left.length;
  return { ok: true, arguments: value, ...(!isPlain && { refs: left }) };
}

/** Returns the value that a reference stands for, or why there is none. */
function targetOf(
  reference: Reference,
  result: Referred,
): { readonly value: Json } | { readonly problem: string } {
  const { path } = reference;
  if ('failed' in result) return { value: null };
  if ('artifact' in result) {
    if (path === '') return { value: result.artifact };
    return { problem: artifactText(reference, result.artifact) };
  }
  const found = valueAt(result.value, path);
  return found === undefined ? { problem: missingText(reference, result.value) } : { value: found };
}

/** Returns a copy of the value with another value at a place. */
export function withValueAt(value: Json, [key, ...rest]: Place, inner: Json): Json {
  if (key === undefined) return inner;
  if (Array.isArray(value)) {
    return value.map((one: Json, index) => (index === key ? withValueAt(one, rest, inner) : one));
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === key ? withValueAt(one ?? null, rest, inner) : one,
    ]),
  );
}

function artifactText({ ref, path }: Reference, name: string): string {
  return (
    `the result of ${ref} is the artifact "${name}", so nothing at "${path}" can be taken from it; ` +
    'refer to it without a path, and a tool gets its name'
  );
}

const MAX_NAMES = 20;

function missingText({ ref, path }: Reference, result: Json): string {
  const names = isObject(result) ? Object.keys(result).slice(0, MAX_NAMES).join(', ') : '';
  const has = names === '' ? 'it has no fields' : `it has ${names}`;
  return `the result of ${ref} has nothing at "${path}"; ${has}`;
}
