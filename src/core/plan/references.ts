import { isObject, type Json, type JsonObject } from '../json.js';
import { valueAt } from '../graph/values.js';

/** The result of an earlier action, or a part of it. In JSON: `{"$ref":"a1","path":"data.id"}`. */
export interface Reference {
  readonly ref: string;
  /** Names and indexes, separated by dots; empty: the whole result. */
  readonly path: string;
}

/** Returns the value as a reference; null if it is not one. */
function referenceOf(value: unknown): Reference | null {
  if (!isObject(value)) return null;
  const { $ref, path = '', ...rest } = value;
  if (typeof $ref !== 'string' || typeof path !== 'string') return null;
  return Object.keys(rest).length === 0 ? { ref: $ref, path } : null;
}

/** Returns all references in a value, at any depth, each with its place. */
export function refsIn(
  value: unknown,
  at: readonly (string | number)[] = [],
): readonly (Reference & { readonly at: readonly (string | number)[] })[] {
  const reference = referenceOf(value);
  if (reference !== null) return [{ ...reference, at }];
  if (Array.isArray(value)) {
    return value.flatMap((inner: unknown, index) => refsIn(inner, [...at, index]));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => refsIn(inner, [...at, key]));
}

/** The target of a reference: the value of a result, or the name of its artifact. */
export type Referred = { readonly value: Json } | { readonly artifact: string };

/** The outcome of `resolveReferences`. */
export type Resolved<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

/**
 * Replaces references with the results of finished actions, or with artifact names, because tools
 * read artifacts by name. Results are inserted unchanged, so anything in them that looks like a
 * reference is never followed. A reference to an unfinished action stays. `results`: by action id.
 */
export function resolveReferences(
  value: JsonObject,
  results: ReadonlyMap<string, Referred>,
): Resolved<JsonObject> {
  const missing: string[] = [];
  const replaced = replace(value, (reference) => {
    const { ref, path } = reference;
    const result = results.get(ref);
    if (result === undefined) return undefined;
    if ('artifact' in result) {
      if (path !== '') missing.push(artifactText(reference, result.artifact));
      return result.artifact;
    }
    const found = valueAt(result.value, path);
    if (found === undefined) missing.push(missingText(reference, result.value));
    return found ?? null;
  });
  const [problem] = missing;
  if (problem !== undefined) return { ok: false, problem };
  return { ok: true, value: isObject(replaced) ? replaced : {} };
}

function replace(value: Json, found: (reference: Reference) => Json | undefined): Json {
  const reference = referenceOf(value);
  if (reference !== null) {
    const result = found(reference);
    return result === undefined ? value : result;
  }
  if (Array.isArray(value)) return value.map((inner: Json) => replace(inner, found));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, replace(inner ?? null, found)]),
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
