import { type JsonObject, isObject } from '../core/text/json.js';
import { percentDecoded } from '../core/text/text.js';

/** An error of the validator for JSON schemas. `params` are empty if they are long. */
export interface SchemaError {
  /** The place of the value, as a JSON pointer. */
  readonly instancePath: string;
  /** The place of the keyword in the schema, as a URL fragment with a JSON pointer. */
  readonly schemaPath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Keywords whose error follows the errors of the schemas in them. */
const WRAPPERS: readonly string[] = ['anyOf', 'oneOf', 'propertyNames'];
/** Keywords that name the values, or the kinds of values, that a schema takes. */
const KINDS: readonly string[] = ['type', 'const', 'enum'];

export function isWrapper({ keyword }: SchemaError): boolean {
  return WRAPPERS.includes(keyword);
}

/** Returns what a schema has at the place of an error, without the last `up` keys. */
export function schemaAt(schema: JsonObject, { schemaPath }: SchemaError, up = 0): unknown {
  const keys = keysOf(percentDecoded(schemaPath));
  return nodeAt(schema, keys.slice(0, keys.length - up));
}

/**
 * Returns the errors that are part of the error of a wrapper: the last ones before it. Those of a schema that is
 * referred to have its place, or `#` if the validator has compiled it on its own.
 */
export function innerErrors(
  before: readonly SchemaError[],
  wrapper: SchemaError,
  schema: JsonObject,
): readonly SchemaError[] {
  const { instancePath, schemaPath, keyword } = wrapper;
  const parent = schemaPath.slice(0, schemaPath.lastIndexOf('/'));
  const owner = schemaAt(schema, wrapper, 1);
  const inner = schemaAt(schema, wrapper);
  const references = referencesOf(inner, schema);
  const isPart = (error: SchemaError): boolean => {
    const isHere = error.instancePath === instancePath;
    const isInside = keyword !== 'propertyNames' && isBelow(error.instancePath, instancePath);
    if (!isHere && !isInside) return false;
    if (isBelow(error.schemaPath, schemaPath)) return true;
    const isSibling = isHere && error.schemaPath === `${parent}/${error.keyword}`;
    if (isSibling && isObject(owner) && Object.hasOwn(owner, error.keyword)) return false;
    return inner === undefined || isOfReference(error, references);
  };
  const last = before.findLastIndex((error) => !isPart(error));
  return before.slice(last + 1);
}

/**
 * Returns the errors of each alternative of a union; null if it is unknown to which alternative one belongs.
 */
export function errorsByAlternative(
  union: SchemaError,
  inner: readonly SchemaError[],
  schema: JsonObject,
): readonly (readonly SchemaError[])[] | null {
  const alternatives = schemaAt(schema, union);
  const references = Array.isArray(alternatives)
    ? alternatives.map((one) => referencesOf(one, schema))
    : [];
  const groups = new Map<number, SchemaError[]>();
  let current = 0;
  for (const error of inner) {
    const { schemaPath } = error;
    const [index] = isBelow(schemaPath, union.schemaPath)
      ? schemaPath.slice(union.schemaPath.length + 1).split('/')
      : [];
    const possible = references.flatMap((each, at) =>
      at >= current && isOfReference(error, each) ? [at] : [],
    );
    const at = index === undefined ? possible[0] : Number(index);
    const isNamed = [...(references[at ?? 0] ?? [])].some(([one]) => isBelow(schemaPath, one));
    const isClear = index !== undefined || isNamed || possible.length === 1;
    if (at === undefined || !isClear) return null;
    current = at;
    groups.set(at, [...(groups.get(at) ?? []), error]);
  }
  return [...groups.values()];
}

/** Whether an alternative takes only other values, or only other kinds of values. */
export function isOtherKind(group: readonly SchemaError[], { instancePath }: SchemaError): boolean {
  return group.every(
    (error) => isWrapper(error) || (error.instancePath === instancePath && isKind(error)),
  );
}

function isKind({ keyword }: SchemaError): boolean {
  return KINDS.includes(keyword);
}

/** Whether an error says that a field of a union's value has another constant. */
export function isOtherConstant(error: SchemaError, { instancePath }: SchemaError): boolean {
  return error.keyword === 'const' && isFieldOf(error.instancePath, instancePath);
}

function isFieldOf(path: string, parent: string): boolean {
  return path.startsWith(`${parent}/`) && !path.slice(parent.length + 1).includes('/');
}

/**
 * Returns the errors of the alternative that a value most likely means: one whose constants and whose kind it
 * has, with the fewest errors.
 */
export function likelyAlternative(
  groups: readonly (readonly SchemaError[])[],
  union: SchemaError,
): readonly SchemaError[] {
  const isMeant = (group: readonly SchemaError[]): boolean =>
    !group.some(
      (error) =>
        isOtherConstant(error, union) ||
        (error.instancePath === union.instancePath && isKind(error)),
    );
  const meant = groups.filter(isMeant);
  const [likely = []] = (meant.length > 0 ? meant : groups).toSorted(
    (one, other) => one.length - other.length,
  );
  return likely;
}

type References = ReadonlyMap<string, unknown>;

/** Whether an error may be one of a schema that is referred to. */
function isOfReference({ schemaPath }: SchemaError, references: References): boolean {
  const keys = keysOf(percentDecoded(schemaPath));
  return [...references].some(
    ([one, target]) => isBelow(schemaPath, one) || nodeAt(target, keys) !== undefined,
  );
}

function isBelow(path: string, parent: string): boolean {
  return path.startsWith(`${parent}/`);
}

/** Returns the references in a schema, and in the schemas to which they refer, with those schemas. */
function referencesOf(part: unknown, schema: JsonObject): References {
  const found = new Map<string, unknown>();
  const open: unknown[] = [part ?? null];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) open.push(...node);
    if (!isObject(node)) continue;
    const { $ref: reference } = node;
    if (typeof reference === 'string' && !found.has(reference)) {
      const pointer = reference.startsWith('#') ? percentDecoded(reference) : '';
      const target = pointer === '' ? null : (nodeAt(schema, keysOf(pointer)) ?? null);
      found.set(reference, target);
      open.push(target);
    }
    open.push(...Object.values(node));
  }
  return found;
}

/** Returns the keys of a JSON pointer, also of one in a URL fragment. */
export function keysOf(pointer: string): readonly string[] {
  const keys = pointer.split('/').slice(1);
  return keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function nodeAt(root: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (at, key) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, key)
        ? Reflect.get(at, key)
        : undefined,
    root,
  );
}
