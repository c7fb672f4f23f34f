import { isObject, type Json, type JsonObject } from '../json.js';

/** Maximum characters of an answer. The outcome's output is the whole state. */
const MAX_ANSWER = 64 * 1024;

/** Returns a text as an outcome's answer, cut if it is too long. */
export function answerText(text: string): string {
  return text.length > MAX_ANSWER ? `${text.slice(0, MAX_ANSWER)}…` : text;
}

/** The data to which a computed value may refer. `item` is undefined outside of `each`. */
export interface Scope {
  readonly state: JsonObject;
  readonly item?: Json | undefined;
}

/**
 * Returns the value that a `GraphValue` stands for. A missing place evaluates to null, or to an
 * empty string inside a text. Never throws for JSON.
 */
export function evaluate(value: Json, scope: Scope): Json {
  if (Array.isArray(value)) return value.map((each: Json) => evaluate(each, scope));
  if (!isObject(value)) return value;
  const reference = referenceIn(value, scope);
  if (reference !== undefined) return reference;
  const entries = Object.entries(value).map(([key, each]) => [key, evaluate(each ?? null, scope)]);
  return Object.fromEntries(entries);
}

/** Returns the text that a `GraphValue` stands for; anything that is not a text becomes JSON. */
export function evaluateText(value: Json, scope: Scope): string {
  return toText(evaluate(value, scope));
}

/** Returns the value of a reference; undefined for an object that is not a reference. */
function referenceIn(value: JsonObject, { state, item }: Scope): Json | undefined {
  const keys = Object.keys(value);
  if (keys.length !== 1) return undefined;
  const { $path, $item, $text } = value;
  if (typeof $path === 'string') return valueAt(state, $path) ?? null;
  if (typeof $item === 'string') return valueAt(item, $item) ?? null;
  if (!Array.isArray($text)) return undefined;
  return $text.map((part: Json) => toText(evaluate(part, { state, item }))).join('');
}

function toText(value: Json): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the value at a place such as `items.0.price`; an empty path is the value itself. */
export function valueAt(value: Json | undefined, path: string): Json | undefined {
  if (path === '') return value;
  return path.split('.').reduce<Json | undefined>((inner, key) => {
    if (Array.isArray(inner)) return /^\d+$/.test(key) ? inner[Number(key)] : undefined;
    return isObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined;
  }, value);
}

/** Maximum items of one `each`, whose calls and results are passed from segment to segment. */
const MAX_ITEMS = 1_000;

/**
 * Returns the list over which an `each` iterates; null if the value is not a list or is too long.
 */
export function itemsOf(over: Json, values: JsonObject): readonly Json[] | null {
  const list = evaluate(over, { state: values });
  return Array.isArray(list) && list.length <= MAX_ITEMS ? list : null;
}
